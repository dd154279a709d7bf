// The part of Python Environments' interface that other extensions use to learn the interpreter of a project.
const vscode = require("vscode");

const interpreters = vscode.workspace.getConfiguration("standIn").get("pythons");
const changed = new vscode.EventEmitter();
let selected = 0;

function environment() {
  const executable = interpreters[selected];
  return {
    envId: { id: executable, managerId: "stand-in" },
    displayName: executable,
    environmentPath: vscode.Uri.file(executable),
    execInfo: { run: { executable, args: [] } },
  };
}

exports.activate = (context) => {
  const command = vscode.commands.registerCommand("standIn.switch", () => {
    const old = environment();
    selected = (selected + 1) % interpreters.length;
    changed.fire({ uri: undefined, old, new: environment() });
  });
  context.subscriptions.push(command);
  return { getEnvironment: async () => environment(), onDidChangeEnvironment: changed.event };
};
