// The part of Python's interface that other extensions use to learn the interpreter of a project.
const vscode = require("vscode");

exports.activate = () => {
  const interpreter = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, ".venv", "bin", "python");
  return {
    environments: {
      getActiveEnvironmentPath: () => ({ path: interpreter.fsPath }),
      resolveEnvironment: async () => ({ executable: { uri: interpreter } }),
      onDidChangeActiveEnvironmentPath: new vscode.EventEmitter().event,
    },
  };
};
