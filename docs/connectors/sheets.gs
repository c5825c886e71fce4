// Fills the sheet "Subscriptions" of a Google spreadsheet with the store's subscriptions. Paste it into Extensions > Apps
// Script. Set the script properties BASE and TOKEN in Project Settings, and run start once. Times are in UTC.
const columns = [
  "id", "status", "is_active", "external_customer_id", "order_id", "product.name", "duration", "price.amount", "price.currency",
  "current_period_end", "cancel_at_period_end", "canceled_at", "cancellation_reason", "created_at", "updated_at",
];

// Fills the sheet now and every hour.
function start() {
  fill();
  const isOurs = (trigger) => trigger.getHandlerFunction() === "fill";
  if (!ScriptApp.getProjectTriggers().some(isOurs)) ScriptApp.newTrigger("fill").timeBased().everyHours(1).create();
}

// Reads everything before it writes, so an error leaves the old table.
function fill() {
  const rows = new Map(); // by ID: a subscription that changes meanwhile comes twice
  for (let page = { next: "", has_more: true }; page.has_more; ) {
    page = read(`/subscriptions/changes?limit=1000${page.next && `&after=${page.next}`}`);
    for (const { id } of page.deleted) rows.delete(id);
    for (const row of page.data) rows.set(row.id, columns.map((column) => cellOf(row, column)));
  }
  const table = [columns, ...rows.values()];
  const book = SpreadsheetApp.getActive(), sheet = book.getSheetByName("Subscriptions") ?? book.insertSheet("Subscriptions");
  const missing = table.length - sheet.getMaxRows();
  if (missing > 0) sheet.insertRowsAfter(sheet.getMaxRows(), missing);
  sheet.getRange(1, 1, sheet.getMaxRows(), columns.length).clearContent();
  sheet.getRange(1, 1, table.length, columns.length).setValues(table);
}

function read(path) {
  const { BASE, TOKEN } = PropertiesService.getScriptProperties().getProperties();
  if (!BASE || !TOKEN) throw Error("Set the script properties BASE, the service's URL, and TOKEN, the store's API token.");
  for (let tries = 1; ; tries++) {
    const response = UrlFetchApp.fetch(BASE + path, { headers: { Authorization: `Bearer ${TOKEN}` }, muteHttpExceptions: true });
    const status = response.getResponseCode();
    if (status === 200) return JSON.parse(response.getContentText()).data;
    if (status === 401) throw Error("The script property TOKEN is not a valid API token of the store.");
    if (![429, 503].includes(status) || tries === 5) throw Error(`The service answers ${status}: ${response.getContentText()}`);
    Utilities.sleep(1000 * (Number(response.getHeaders()["Retry-After"]) || 5));
  }
}

// A time becomes one that Sheets can calculate with. The ' keeps any other text from becoming a formula or a number.
function cellOf(row, column) {
  const value = column.split(".").reduce((part, name) => part?.[name], row) ?? "";
  if (typeof value !== "string" || value === "") return value;
  return /(_at|_date|_start|_end)$/.test(column) ? value.slice(0, 19).replace("T", " ") : `'${value}`;
}
