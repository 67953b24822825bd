import type { ContextOperations, PipelineOperations } from './operations'
import type { CompiledRuns, PipelineRuns } from './tensor'

export * from './native'
export * from './operations'
export * from './overlap'
export * from './tensor'

declare module './native' {
  interface Context extends ContextOperations {}
  interface Pipeline extends PipelineOperations, PipelineRuns {
    /** Runs a function, which records. No gradient passes through what it records. Returns what it returns. */
    noGrad<T>(record: () => T): T
  }
  interface Compiled extends CompiledRuns {}
}
