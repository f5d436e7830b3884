// What stamp.py is for the programs in Python.
const fs = require('fs'), path = require('path'), { spawn } = require('child_process')
const folder = process.env.BENCH_DIR, files = {}
const now = () => (performance.timeOrigin + performance.now()) / 1000
const due = new Date(+(process.env.BENCH_DUE || 0) * 1000)

exports.N = +(process.env.BENCH_N || 0)
exports.MODE = process.env.BENCH_MODE || 'noop'
exports.cron5 = () => `${due.getUTCMinutes()} ${due.getUTCHours()} ${due.getUTCDate()} ${due.getUTCMonth() + 1} *`
exports.stamp = kind => {
  if (!files[kind]) files[kind] = fs.openSync(path.join(folder, `${kind}.${process.pid}`), 'a')
  fs.writeSync(files[kind], now().toFixed(6) + '\n')
}
exports.ready = (what = 'ready') => fs.writeFileSync(path.join(folder, what), '')
exports.runChild = () => new Promise((ok, no) => {
  const child = spawn(process.env.BENCH_CHILD, [path.join(folder, 'started.cmd')], { stdio: 'ignore' })
  child.on('exit', ok)
  child.on('error', no)
})
exports.post = async () => {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(process.env.BENCH_SINK, { method: 'POST', body: '{"order": 1}', headers })
  if (!answer.ok) throw new Error(`answer ${answer.status}`)
  await answer.text()
}
const sleep = ms => new Promise(done => setTimeout(done, ms))
const started = () => fs.readdirSync(folder).filter(name => name.startsWith('started.'))
  .reduce((sum, name) => sum + fs.readFileSync(path.join(folder, name), 'latin1').split('\n').length - 1, 0)
exports.probe = async send => {
  const base = started()
  for (let number = 0; number < exports.N; number++) {
    await sleep(30 + Math.random() * 50)
    exports.stamp('enq')
    await send()
    const end = Date.now() + 15000
    while (started() < base + number + 1 && Date.now() < end) await sleep(2)
  }
  exports.ready('done')
}
