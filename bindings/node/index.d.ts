import type { ContextOperations, PipelineOperations } from './operations'
import type { CompiledRuns, PipelineRuns } from './tensor'

export * from './native'
export * from './operations'
export * from './overlap'
export * from './tensor'

declare module './native' {
  interface Context extends ContextOperations {}
  interface Pipeline extends PipelineOperations, PipelineRuns {}
  interface Compiled extends CompiledRuns {}
}
