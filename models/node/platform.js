'use strict'

/** Returns the name of this platform's package, such as linux-x64-gnu. */
function platform() {
  const { platform, arch } = process
  if (platform === 'linux') {
    // Otherwise the report would query name servers for network addresses.
    process.report.excludeNetwork = true
    const libc = process.report.getReport().header.glibcVersionRuntime ? 'gnu' : 'musl'
    return `linux-${arch}-${libc}`
  }
  return platform === 'win32' ? `win32-${arch}-msvc` : `${platform}-${arch}`
}

module.exports = platform()
