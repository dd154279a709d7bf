-- A user's session in Neovim: what is shown, a quick-fix, fix-all, other settings; each check is a line on stdout.
-- `nvim -l` needs 0.9, `vim.lsp.start` 0.8: this runs from 0.7 on, as Debian has it.
local file, server = os.getenv('EDITED_FILE'), vim.json.decode(os.getenv('SERVER_COMMAND'))
local limit = 300000
local failed = 0

local function check(holds, name, shown)
  if not holds then failed = failed + 1 end
  local more = holds and '' or ': ' .. vim.inspect(shown)
  io.stdout:write((holds and 'ok - ' or 'not ok - ') .. name .. more:gsub('\n', ' ') .. '\n')
end

local function codes()
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, each.code or (each.user_data and each.user_data.lsp and each.user_data.lsp.code))
  end
  table.sort(found)
  return table.concat(found, ' ')
end

local function shows(wanted)
  vim.wait(limit, function() return codes() == wanted end, 20)
  return codes() == wanted
end

local told = {}
vim.lsp.handlers['window/showMessage'] = function(_, result) table.insert(told, result.message) end

vim.cmd('edit ' .. file)
local function start(settings)
  local id = vim.lsp.start_client({
    name = 'pallas-lint', cmd = server, root_dir = vim.fn.fnamemodify(file, ':h'), init_options = settings,
  })
  vim.lsp.buf_attach_client(0, id)
  return id
end
local id = start({ ['jax-version'] = '0.10.2' })
local encoding = 'utf-16'

local function request(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, limit)
  return answers and answers[id] and answers[id].result
end

local function go_to(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(text, 1, true)
    if column then return vim.api.nvim_win_set_cursor(0, { number, column - 1 }) end
  end
end

local function actions(only)
  local params = vim.lsp.util.make_range_params(0, encoding)
  params.context = { diagnostics = {}, only = only }
  return request('textDocument/codeAction', params) or {}
end

local function apply(title, only)
  for _, action in ipairs(actions(only)) do
    if action.title:find(title, 1, true) then
      vim.lsp.util.apply_workspace_edit(action.edit, encoding)
      return true
    end
  end
  return false
end

check(shows('PAL101 PAL301'), 'diagnostics', codes())

go_to('jnp.cumsum')
local hover = request('textDocument/hover', vim.lsp.util.make_position_params(0, encoding))
check(hover and vim.inspect(hover):find('does not work', 1, true), 'hover', hover)

if vim.lsp.inlay_hint and vim.lsp.inlay_hint.get then
  vim.lsp.inlay_hint.enable(true, { bufnr = 0 })
  vim.wait(limit, function() return #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0 end, 20)
  check(#vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0, 'inlay hints')
else
  local everything = { start = { line = 0, character = 0 }, ['end'] = { line = 100, character = 0 } }
  local hints = request('textDocument/inlayHint', { textDocument = { uri = vim.uri_from_bufnr(0) }, range = everything })
  check(hints and #hints > 0, 'inlay hints asked for', hints)
end

local tokens = request('textDocument/semanticTokens/full', { textDocument = { uri = vim.uri_from_bufnr(0) } })
check(tokens and #tokens.data > 0 and #tokens.data % 5 == 0, 'semantic tokens', tokens)

go_to('i * 8')
check(apply('PAL301', { 'quickfix' }), 'quick-fix offered', actions())
check(shows('PAL101'), 'finding gone', codes())
vim.cmd('undo')
check(shows('PAL101 PAL301'), 'finding back after undo', codes())
vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# "🟦" é' })
check(apply('Fix all', { 'source.fixAll.pallasLint' }), 'fix all offered', actions({ 'source' }))
check(shows('PAL101'), 'fixed', codes())
vim.cmd('write')
check(table.concat(vim.fn.readfile(file), '\n'):find('lambda i: (i, 0)', 1, true), 'file on disk', codes())

local answer = request('workspace/executeCommand', {
  command = 'pallasLint.probe', arguments = { { uri = vim.uri_from_bufnr(0), ['function'] = 'run' } },
})
check(answer and answer.outcome == 'not-allowed', 'probe refused', answer)
vim.wait(limit, function() return #told > 0 end, 20)
check(table.concat(told, '\n'):find('allow-probe', 1, true), 'the message says how to allow it', told)

vim.lsp.buf_notify(0, 'workspace/didChangeConfiguration', { settings = { ['jax-version'] = '0.10.2', ignore = { 'PAL101' } } })
check(shows(''), 'other settings', codes())

vim.lsp.stop_client(id)
vim.wait(limit, function() return vim.lsp.get_client_by_id(id) == nil end, 20)
check(vim.lsp.get_client_by_id(id) == nil, 'stopped')
id = start({ pallasLint = { jaxVersion = '0.10.2', lint = { extendSelect = { 'PAL001' } } } })
check(shows('PAL101'), 'restarted', codes())
vim.lsp.stop_client(id)
vim.wait(limit, function() return vim.lsp.get_client_by_id(id) == nil end, 20)
vim.cmd(failed == 0 and 'qa!' or 'cq')
