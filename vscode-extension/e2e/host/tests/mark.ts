/** What the lines of the tests' report begin with. */
export const MARK = "[tests] ";
