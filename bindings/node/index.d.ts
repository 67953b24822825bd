import type { ContextOperations } from './operations'

export * from './native'
export * from './operations'
export * from './overlap'
export * from './tensor'

declare module './native' {
  interface Context extends ContextOperations {}
}
