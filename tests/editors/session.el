;;; session.el --- a user's session in Emacs with eglot  -*- lexical-binding: t -*-
;; What is shown, a quick-fix, fix-all, other settings; each check is a line on stdout. Eglot 1.9 to 1.17.
(require 'cl-lib)
(require 'eglot)
(require 'flymake)
(require 'json)

(setq eglot-sync-connect t eglot-autoshutdown nil make-backup-files nil eglot-confirm-server-initiated-edits nil)
(defconst limit 300)
(defvar failed 0)
(defvar told "")
(defvar file (getenv "EDITED_FILE"))
(defvar server (append (json-read-from-string (getenv "SERVER_COMMAND")) nil))

(defun check (holds name &optional shown)
  (unless holds (cl-incf failed))
  (princ (format "%s - %s%s\n" (if holds "ok" "not ok") name
                 (if holds "" (replace-regexp-in-string "\n" " " (format ": %S" shown))))))

(defun until (predicate)
  (let ((end (+ (float-time) limit)) found)
    (while (and (not (setq found (funcall predicate))) (< (float-time) end))
      (accept-process-output nil 0.02))
    found))

(defun codes ()
  (let (found)
    (dolist (each (flymake-diagnostics))
      (let ((text (flymake-diagnostic-text each)))
        (when (string-match "PAL[0-9]+" text) (push (match-string 0 text) found))))
    (mapconcat #'identity (sort found #'string<) " ")))

(defun shows (wanted)
  (until (lambda () (flymake-start) (string= (codes) wanted))))

(defun ask (method params)
  (jsonrpc-request (eglot-current-server) method params))

(defun apply-edit (edit)
  (if (eq 2 (car (func-arity 'eglot--apply-workspace-edit)))
      (eglot--apply-workspace-edit edit 'session)
    (eglot--apply-workspace-edit edit))
  (eglot--signal-textDocument/didChange))

(defun actions (kind)
  (append (ask :textDocument/codeAction
               (list :textDocument (eglot--TextDocumentIdentifier)
                     :range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position))
                     :context (list :diagnostics [] :only (vector kind))))
          nil))

(defun apply-action (title kind)
  (let ((found (cl-find-if (lambda (each) (string-match-p title (plist-get each :title))) (actions kind))))
    (when found (apply-edit (plist-get found :edit)) t)))

(defun connect ()
  (apply #'eglot--connect (eglot--guess-contact))
  (until #'eglot-managed-p)
  (flymake-mode 1))

(cl-defmethod eglot-handle-notification :before (_server (_method (eql window/showMessage)) &key _type message)
  (setq told (concat told message)))

(setq eglot-server-programs
      `((python-mode . (,@server :initializationOptions (:jax-version "0.10.2")))))
(setq project-find-functions (list (lambda (_) (cons 'transient (file-name-directory file)))))
(find-file file)
(connect)
(check (shows "PAL101 PAL301") "diagnostics" (codes))

(goto-char (point-min))
(search-forward "jnp.cumsum")
(backward-char)
(let ((hover (ask :textDocument/hover (eglot--TextDocumentPositionParams))))
  (check (string-match-p "does not work" (format "%S" hover)) "hover" hover))

(if (fboundp 'eglot-inlay-hints-mode)
    (progn
      (eglot-inlay-hints-mode 1)
      (eglot--update-hints-1 (point-min) (point-max))
      (check (until (lambda () (cl-some (lambda (each) (overlay-get each 'eglot--inlay-hint))
                                        (overlays-in (point-min) (point-max)))))
             "inlay hints"))
  (let ((hints (ask :textDocument/inlayHint
                    (list :textDocument (eglot--TextDocumentIdentifier)
                          :range '(:start (:line 0 :character 0) :end (:line 100 :character 0))))))
    (check (> (length hints) 0) "inlay hints asked for" hints)))

(goto-char (point-min))
(search-forward "i * 8")
(backward-char)
(check (apply-action "PAL301" "quickfix") "quick-fix offered" (actions "quickfix"))
(check (shows "PAL101") "finding gone" (codes))
(goto-char (point-min))
(search-forward "(i, 0)")
(replace-match "(i * 8, 0)")
(goto-char (point-min))
(insert "# \"🟦\" é\n")
(eglot--signal-textDocument/didChange)
(check (shows "PAL101 PAL301") "finding back" (codes))
(check (apply-action "Fix all" "source.fixAll.pallasLint") "fix all offered" (actions "source"))
(check (shows "PAL101") "fixed" (codes))
(save-buffer)
(check (with-temp-buffer (insert-file-contents file) (search-forward "lambda i: (i, 0)" nil t)) "file on disk")

(let ((answer (ask :workspace/executeCommand
                   (list :command "pallasLint.probe"
                         :arguments (vector (list :uri (eglot--path-to-uri file) :function "run"))))))
  (check (equal (plist-get answer :outcome) "not-allowed") "probe refused" answer))
(check (until (lambda () (string-match-p "allow-probe" told))) "the message says how to allow it" told)

(jsonrpc-notify (eglot-current-server) :workspace/didChangeConfiguration
                '(:settings (:jax-version "0.10.2" :ignore ["PAL101"])))
(check (shows "") "other settings" (codes))

(eglot-shutdown (eglot-current-server))
(check (until (lambda () (not (eglot-current-server)))) "stopped")
(setq eglot-server-programs
      `((python-mode . (,@server :initializationOptions (:pallasLint (:jaxVersion "0.10.2"))))))
(connect)
(check (shows "PAL101") "restarted" (codes))
(eglot-shutdown (eglot-current-server))
(kill-emacs (if (= failed 0) 0 1))
;;; session.el ends here
