/** The arguments of a probe as one types them: `f32[512,512], f32[512,512], bm=128`. */

const DTYPES = new Set(
  (
    "bool b1 f16 f32 f64 bf16 i2 i4 i8 i16 i32 i64 u2 u4 u8 u16 u32 u64 c64 c128 f8_e3m4 f8_e4m3 f8_e4m3fn " +
    "f8_e4m3b11fnuz f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz f8_e8m0fnu f4_e2m1fn"
  ).split(" "),
);
const CONSTANTS = new Set(["None", "True", "False"]);
const SPACE = /\s+/y;
const NAME = /[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*/uy;
const NUMBER =
  /[+-]?(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?j?)/y;
const STRING = /[bBrRuU]{0,2}(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")/y;
const KEYWORD = /([\p{L}_][\p{L}\p{N}_]*)\s*=(?!=)\s*/uy;
const SHAPE = /\[\s*(?:\d+\s*(?:,\s*\d+\s*)*(?:,\s*)?)?\]/y;
const KEY_DTYPE = /key<\w+>/y;
const VALUES = /\s*=\s*/y;
const ARANGE = /arange\b/y;

/** A parameter of the function that is probed; `default` is null where it has none. */
export interface Parameter {
  readonly name: string;
  readonly default: string | null;
  readonly annotation: string | null;
}

export interface Arguments {
  readonly positional: number;
  readonly keywords: readonly string[];
}

/** What is wrong with arguments, and how far it is in the text. */
export class ArgumentsError extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** How many arguments the text has and which by name. Throws ArgumentsError. */
export function parseArguments(text: string): Arguments {
  return new Parser(text).all();
}

export interface Remark {
  readonly message: string;
  /** A hint lets the arguments pass; an error is one for sure. */
  readonly severity: "error" | "hint";
}

/** What to say about arguments while they are typed; undefined where nothing is wrong with them. */
export function remarkOn(text: string, parameters: readonly Parameter[]): Remark | undefined {
  let given: Arguments;
  try {
    given = parseArguments(text);
  } catch (error) {
    if (error instanceof ArgumentsError) {
      return { message: error.message, severity: "error" };
    }
    throw error;
  }
  if (parameters.length === 0) {
    return undefined;
  }
  const variadic = parameters.some((parameter) => parameter.name.startsWith("*"));
  const named = new Set(parameters.map((parameter) => parameter.name));
  const unknown = given.keywords.find((keyword) => !named.has(keyword));
  if (unknown !== undefined && !variadic) {
    return { message: `the function has no parameter ${unknown}`, severity: "hint" };
  }
  if (given.positional > parameters.length && !variadic) {
    return { message: `the function takes ${parameters.length} arguments, not ${given.positional}`, severity: "hint" };
  }
  const missing = parameters
    .slice(given.positional)
    .filter(({ name, default: value }) => value === null && !name.startsWith("*") && !given.keywords.includes(name));
  if (missing.length > 0) {
    return { message: `still to be given: ${missing.map(({ name }) => name).join(", ")}`, severity: "hint" };
  }
  return undefined;
}

class Parser {
  private at = 0;

  constructor(private readonly text: string) {}

  all(): Arguments {
    let positional = 0;
    const keywords: string[] = [];
    this.take(SPACE);
    while (this.at < this.text.length) {
      const start = this.at;
      const keyword = this.take(KEYWORD)?.[1];
      if (keyword === undefined) {
        if (keywords.length > 0) {
          throw new ArgumentsError("arguments by position come before those by name", start);
        }
        positional += 1;
      } else if (keywords.includes(keyword)) {
        throw new ArgumentsError(`${keyword} is given twice`, start);
      } else {
        keywords.push(keyword);
      }
      this.value();
      this.take(SPACE);
      if (this.at < this.text.length && !this.eat(",")) {
        throw new ArgumentsError(`expected a comma before "${this.rest()}"`, this.at);
      }
      this.take(SPACE);
    }
    return { positional, keywords };
  }

  private value(): void {
    this.take(SPACE);
    const start = this.at;
    if (this.eat("[")) {
      this.items("]", () => this.value());
    } else if (this.eat("(")) {
      this.items(")", () => this.value());
    } else if (this.eat("{")) {
      this.items("}", () => this.pair());
    } else if (this.take(STRING) === undefined && this.take(NUMBER) === undefined) {
      const name = (this.take(KEY_DTYPE) ?? this.take(NAME))?.[0];
      if (name === undefined) {
        throw new ArgumentsError(this.rest() === "" ? "a value is missing" : `cannot read "${this.rest()}"`, start);
      }
      this.named(name, start);
    }
  }

  /** An array such as `f32[8,128]`, a dtype, or a constant. */
  private named(name: string, start: number): void {
    const array = this.text[this.at] === "[";
    if (array && !DTYPES.has(name) && !name.startsWith("key<")) {
      throw new ArgumentsError(`${name} is not a dtype: write f32, bf16, i32, bool as jax prints them`, start);
    }
    if (array) {
      if (this.take(SHAPE) === undefined) {
        throw new ArgumentsError(`the shape of ${name}[…] is written in numbers: ${name}[8,128]`, start);
      }
      this.values();
    } else if (!DTYPES.has(name) && !CONSTANTS.has(name) && !/^(jnp|np|numpy|jax\.numpy)\.\w+$/.test(name)) {
      throw new ArgumentsError(`cannot read ${name}: arrays are written f32[8,128], the rest as literals`, start);
    }
  }

  /** `=[3,1,0,2]` or `=arange` after an array. */
  private values(): void {
    if (this.take(VALUES) !== undefined && this.take(ARANGE) === undefined) {
      if (this.text[this.at] !== "[") {
        throw new ArgumentsError("the values of an array are a list of numbers, or arange", this.at);
      }
      this.value();
    }
  }

  private pair(): void {
    if (this.take(STRING) === undefined && this.take(NUMBER) === undefined) {
      throw new ArgumentsError("the keys of a dict are strings or numbers", this.at);
    }
    this.take(SPACE);
    if (!this.eat(":")) {
      throw new ArgumentsError("expected a colon after the key", this.at);
    }
    this.value();
  }

  private items(close: string, item: () => void): void {
    const start = this.at - 1;
    this.take(SPACE);
    while (!this.eat(close)) {
      item();
      this.take(SPACE);
      if (!this.eat(",") && this.text[this.at] !== close) {
        throw new ArgumentsError(`"${this.text[start]}" is not closed`, start);
      }
      this.take(SPACE);
    }
  }

  private take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text) ?? undefined;
    if (match !== undefined) {
      this.at = pattern.lastIndex;
    }
    return match;
  }

  private eat(character: string): boolean {
    const found = this.text[this.at] === character;
    this.at += found ? 1 : 0;
    return found;
  }

  private rest(): string {
    return this.text.slice(this.at, this.at + 20);
  }
}
