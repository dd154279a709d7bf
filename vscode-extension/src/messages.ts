import * as vscode from "vscode";
import { type LanguageClient, MessageType, ShowMessageNotification } from "vscode-languageclient/node";

import { SECTION } from "./settings";

/** What of the server's messages is shown, by the setting `showNotifications`. */
const LEAST: Record<string, number> = {
  off: 0,
  onError: MessageType.Error,
  onWarning: MessageType.Warning,
  always: MessageType.Debug,
};

/** Show the server's messages as far as the user wants them; all of them are in the log. */
export function handleMessages(client: LanguageClient, output: vscode.LogOutputChannel): void {
  client.onNotification(ShowMessageNotification.type, ({ type, message }) => {
    const wanted = vscode.workspace.getConfiguration(SECTION).get<string>("showNotifications") ?? "onWarning";
    const shown = type <= (LEAST[wanted] ?? MessageType.Warning);
    switch (type) {
      case MessageType.Error:
        output.error(message);
        void (shown && vscode.window.showErrorMessage(message));
        break;
      case MessageType.Warning:
        output.warn(message);
        void (shown && vscode.window.showWarningMessage(message));
        break;
      default:
        output.info(message);
        void (shown && vscode.window.showInformationMessage(message));
    }
  });
}
