// Opens files with speedscope's own importer, which its npm package holds inside the bundle of the page.
//
// node speedscope_import.mjs DIRECTORY_OF_THE_PACKAGE FILE…
//
// Prints one line of JSON for each file: the name, the warnings of the importer, the error if there is one, and
// for each profile its name, its length, the deepest stack, and the number of frames that were opened.

import fs from 'node:fs'
import path from 'node:path'
import vm from 'node:vm'

const [directory, ...files] = process.argv.slice(2)
const release = path.join(directory, 'dist/release')
const bundle = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name))
let source = fs.readFileSync(path.join(release, bundle), 'utf8')

const importer = /async function ([\w$]+)\([\w$]+,[\w$]+\)\{return\(await [\w$]+\)\.importProfileGroupFromText/.exec(source)
if (!importer) throw new Error(`${bundle}: no function imports text; was speedscope's build changed?`)
const start = source.indexOf('(()=>{') + '(()=>{'.length
source = `${source.slice(0, start)}globalThis.importText=${importer[1]};${source.slice(start)}`

// A stand-in for everything that the page asks of a browser. Drawing the page fails; the importer needs none of
// it.
const anything = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => '' : key === 'then' ? undefined : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
  has: () => true,
})
let warnings = []
const warn = (...words) => warnings.push(words.join(' '))
const console_ = { log() {}, info() {}, debug() {}, warn, error: warn, time() {}, timeEnd() {} }
const browser = {
  console: console_, document: anything, navigator: { platform: 'Linux', userAgent: '' }, location: { hash: '', protocol: 'file:' },
  localStorage: anything, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, queueMicrotask, URL, Blob, atob, btoa,
  requestAnimationFrame() {}, addEventListener() {}, matchMedia: () => anything, getComputedStyle: () => anything, devicePixelRatio: 1,
}
browser.window = browser.self = browser
const context = vm.createContext(browser)
try {
  vm.runInContext(source, context, { filename: bundle })
} catch (error) {
  if (!context.importText) throw error
}

for (const file of files) {
  warnings = []
  const result = { file: path.basename(file), profiles: [] }
  try {
    const group = await context.importText(path.basename(file), fs.readFileSync(file, 'utf8'))
    if (!group) result.error = 'speedscope does not know this format'
    for (const profile of group?.profiles ?? []) {
      let opened = 0, deepest = 0, depth = 0
      profile.forEachCall(
        () => { opened++; depth++; deepest = Math.max(deepest, depth) },
        () => { depth-- },
      )
      result.profiles.push({ name: profile.getName(), weight: profile.getTotalWeight(), deepest, opened })
    }
  } catch (error) {
    result.error = String(error)
  }
  result.warnings = warnings
  console.log(JSON.stringify(result))
}
