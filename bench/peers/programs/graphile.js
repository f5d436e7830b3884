// graphile-worker. Role: schema | due | idle | work | enqueue | enqueue-batch | latency
const { run, parseCronItems, makeWorkerUtils, Logger, runMigrations } = require('graphile-worker')
const { Pool } = require('pg'), { EventEmitter } = require('events')
const { N, MODE, cron5, stamp, ready, runChild, post, probe } = require('./stamp.js')
const role = process.argv[2], threads = +(process.env.BENCH_THREADS || 10), BATCH = 1000
const logger = new Logger(() => (level, text) => { if (level === 'error') console.error(text) })
const pgPool = new Pool({ connectionString: process.env.BENCH_PG, max: threads + 4 })
pgPool.on('error', error => console.error(error))
const taskList = { noop: () => { stamp('started') }, cmd: () => runChild(), http: () => post() }

async function serve () {
  const hour = (new Date().getUTCHours() + 12) % 24, items = []
  for (let number = 0; role !== 'work' && number < N; number++) {
    const match = role === 'due' ? cron5() : `${number % 60} ${hour} * * *`
    items.push({ task: MODE, identifier: `job-${number}`, match, options: {} })
  }
  const events = new EventEmitter()
  events.on('cron:scheduled', () => { for (let number = 0; number < N; number++) stamp('recorded') })
  await run({ pgPool, logger, concurrency: threads, noHandleSignals: true, taskList, events, pollInterval: 2000,
    parsedCronItems: parseCronItems(items) })
  ready()
}

async function send () {
  const utils = await makeWorkerUtils({ pgPool, logger })
  if (role === 'enqueue') {
    for (let number = 0, end = Date.now() + 60000; number < N && Date.now() < end; number++) {
      await utils.addJob(MODE, {})
      stamp('enq')
    }
  } else if (role === 'enqueue-batch') {
    for (let first = 0; first < N; first += BATCH) {
      const size = Math.min(BATCH, N - first)
      await utils.addJobs(Array.from({ length: size }, () => ({ identifier: MODE, payload: {} })))
      for (let number = 0; number < size; number++) stamp('enq')
    }
  } else await probe(() => utils.addJob('noop', {}))
  await utils.release()
  process.exit(0)
}

(async () => {
  if (role === 'schema') { await runMigrations({ pgPool, logger }); process.exit(0) }
  await (['due', 'idle', 'work'].includes(role) ? serve() : send())
})().catch(error => { console.error(error); process.exit(1) })
