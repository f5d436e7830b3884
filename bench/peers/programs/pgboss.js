// pg-boss. Role: schema | work | enqueue-batch
const PgBoss = require('pg-boss')
const { N, MODE, stamp, ready, post } = require('./stamp.js')
const role = process.argv[2], WORKERS = 10, BATCH = 1000
const TASK = { noop: () => { stamp('started') }, http: () => post() }[MODE]
// A worker takes a batch, then waits for the rest of its interval, of which this is the shortest that is allowed.
const OPTIONS = { batchSize: 50, pollingIntervalSeconds: 0.5 }

;(async () => {
  const boss = new PgBoss({ connectionString: process.env.BENCH_PG, max: WORKERS + 2, supervise: role === 'work' })
  boss.on('error', error => console.error(error))
  await boss.start()
  if (role === 'schema') await boss.createQueue('tasks')
  else if (role === 'work') {
    for (let number = 0; number < WORKERS; number++) {
      await boss.work('tasks', OPTIONS, jobs => Promise.all(jobs.map(TASK)))
    }
    ready()
    return
  } else {
    for (let first = 0; first < N; first += BATCH) {
      const size = Math.min(BATCH, N - first)
      await boss.insert(Array.from({ length: size }, () => ({ name: 'tasks', data: {} })))
      for (let number = 0; number < size; number++) stamp('enq')
    }
  }
  await boss.stop({ graceful: false })
  process.exit(0)
})().catch(error => { console.error(error); process.exit(1) })
