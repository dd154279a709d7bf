/** Colors of VS Code's own themes, as far as the panel's page uses them. */

export type Theme = "light" | "dark" | "high-contrast" | "high-contrast-light";

/** The classes that VS Code gives the body of a page. */
export const CLASSES: Record<Theme, string> = {
  light: "vscode-light",
  dark: "vscode-dark",
  "high-contrast": "vscode-high-contrast",
  "high-contrast-light": "vscode-high-contrast-light vscode-high-contrast",
};

export const COLORS: Record<Theme, Record<string, string>> = {
  light: {
    "button-background": "#005fb8",
    "button-foreground": "#ffffff",
    "button-secondaryBackground": "#e5e5e5",
    "button-secondaryForeground": "#3b3b3b",
    descriptionForeground: "#3b3b3b",
    "editor-background": "#ffffff",
    "editor-findMatchHighlightBackground": "#ea5c0055",
    "editor-foreground": "#3b3b3b",
    "editorWidget-background": "#f8f8f8",
    focusBorder: "#005fb8",
    "textCodeBlock-background": "#f8f8f8",
    "textLink-foreground": "#005fb8",
  },
  dark: {
    "button-background": "#0078d4",
    "button-foreground": "#ffffff",
    "button-secondaryBackground": "#313131",
    "button-secondaryForeground": "#cccccc",
    descriptionForeground: "#9d9d9d",
    "editor-background": "#1f1f1f",
    "editor-findMatchHighlightBackground": "#9e6a03",
    "editor-foreground": "#cccccc",
    "editorWidget-background": "#202020",
    focusBorder: "#0078d4",
    "textCodeBlock-background": "#2b2b2b",
    "textLink-foreground": "#4daafc",
  },
  "high-contrast": {
    "button-foreground": "#ffffff",
    contrastBorder: "#6fc3df",
    descriptionForeground: "#ffffffb3",
    "editor-background": "#000000",
    "editor-foreground": "#ffffff",
    "editorWidget-background": "#0c141f",
    focusBorder: "#f38518",
    foreground: "#ffffff",
    "textCodeBlock-background": "#000000",
    "textLink-foreground": "#21a6ff",
  },
  "high-contrast-light": {
    "button-background": "#0f4a85",
    "button-foreground": "#ffffff",
    "button-secondaryBackground": "#ffffff",
    "button-secondaryForeground": "#292929",
    contrastBorder: "#0f4a85",
    descriptionForeground: "#292929b3",
    "editor-background": "#ffffff",
    "editor-foreground": "#292929",
    "editorWidget-background": "#ffffff",
    focusBorder: "#006bbd",
    foreground: "#292929",
    "textCodeBlock-background": "#f2f2f2",
    "textLink-foreground": "#0f4a85",
  },
};
