// Parses subscriptions.pq.
import { readFileSync } from "node:fs";
import pq from "@microsoft/powerquery-parser";

const task = await pq.TaskUtils.tryLexParse(pq.DefaultSettings, String(readFileSync("subscriptions.pq")));
if (!pq.TaskUtils.isParseStageOk(task)) throw task.error;
