import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "out", "bundled", "e2e", "node_modules", "test/unit/**", "**/*.mjs"] },
  ...tseslint.configs.strictTypeChecked,
  ...tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { project: ["./tsconfig.json", "./view/tsconfig.json"] } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/dot-notation": "off", // `process.env["X"]` is how index signatures read under strict checks
    },
  },
);
