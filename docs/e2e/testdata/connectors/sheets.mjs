// Runs start() of sheets.gs with what it uses of Google's services. They keep their state in book.json.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { runInNewContext } from "node:vm";

const { BASE, TOKEN } = process.env;
const book = existsSync("book.json") ? JSON.parse(readFileSync("book.json")) : { triggers: [] };
let calls = 0;

// What Sheets stores of a value. A text that it could take for something else must begin with '.
function stored(value) {
  if (typeof value !== "string" || /^$|^\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?$/.test(value)) return value;
  if (!/^['a-z]/.test(value)) throw Error(`Sheets may change ${value}`);
  return value.replace(/^'/, "");
}

const sheet = {
  getMaxRows: () => book.rows.length,
  insertRowsAfter: (row, count) => book.rows.splice(row, 0, ...Array.from({ length: count }, () => [])),
  getRange(row, column, rows, columns) {
    if (row + rows - 1 > book.rows.length || row !== 1 || column !== 1) throw Error("The range is outside the sheet");
    return {
      clearContent: () => book.rows.forEach((cells) => cells.fill("", 0, columns)),
      setValues(values) {
        if (values.length !== rows || values.some(({ length }) => length !== columns)) throw Error("The range has another size");
        values.forEach((cells, at) => book.rows[at].splice(0, columns, ...cells.map(stored)));
      },
    };
  },
};

const services = {
  PropertiesService: { getScriptProperties: () => ({ getProperties: () => ({ BASE, TOKEN }) }) },
  SpreadsheetApp: {
    getActive: () => ({
      getSheetByName: () => book.rows ? sheet : null,
      insertSheet() {
        book.rows = Array.from({ length: 10 }, () => []);
        return sheet;
      },
    }),
  },
  ScriptApp: {
    getProjectTriggers: () => book.triggers.map((name) => ({ getHandlerFunction: () => name })),
    newTrigger: (name) => ({ timeBased: () => ({ everyHours: () => ({ create: () => book.triggers.push(name) }) }) }),
  },
  UrlFetchApp: {
    fetch(url, { headers }) {
      if (++calls === 1) return { getResponseCode: () => 503, getHeaders: () => ({ "Retry-After": "7" }) };
      const said = execFileSync("curl", ["-sSi", "-H", `Authorization: ${headers.Authorization}`, url.replace("limit=1000", "limit=20")], { encoding: "utf8" });
      const [head, body] = said.split(/\r\n\r\n(.*)/s);
      return {
        getResponseCode: () => Number(head.split(" ")[1]),
        getHeaders: () => Object.fromEntries(head.split("\r\n").slice(1).map((line) => line.split(/: (.*)/))),
        getContentText: () => body,
      };
    },
  },
  Utilities: { sleep: (ms) => console.log(`waits ${ms} ms`) },
};

try {
  runInNewContext(`${readFileSync("sheets.gs")}\nstart()`, services);
  if (calls < 4) console.log(`${calls} calls: this does not test several pages`);
} catch ({ message }) {
  console.log(message);
}
writeFileSync("book.json", JSON.stringify(book));
