# Copies the store's subscriptions at BASE into the table commerce.subscriptions, with nested members as JSON. TOKEN has the
# API token, and DESTINATION__POSTGRES__CREDENTIALS the URL of the database: dlt knows other destinations, too. Run it again
# to apply what has changed since. It was run with dlt 1.26.
import os
import dlt
from dlt.pipeline.exceptions import PipelineStepFailed
from dlt.sources.rest_api import rest_api_resources


def rows(page):
    state = dlt.current.resource_state()
    state["after"] = page["next"]
    for row in page["deleted"] + page["data"]:
        state["rows"] = state.get("rows", 0) + 1
        yield {"deleted_at": None, **row, "row": state["rows"]}


@dlt.source
def commerce(again=False):
    after = None if again else dlt.current.resource_state("subscriptions").get("after")
    return rest_api_resources({
        "client": {"base_url": os.environ["BASE"], "auth": {"type": "bearer", "token": os.environ["TOKEN"]}},
        "resources": [{
            "name": "subscriptions",
            "endpoint": {
                "path": "subscriptions/changes",
                "params": {"limit": 1000, "after": after},
                "paginator": {"type": "cursor", "cursor_param": "after", "cursor_path": "data.next",
                              "has_more_path": "data.has_more"},
                "data_selector": "data",
            },
            "processing_steps": [{"yield_map": rows}],
            "write_disposition": "merge",
            "primary_key": "id",
            "columns": {"deleted_at": {"data_type": "timestamp", "hard_delete": True}, "row": {"dedup_sort": "desc"}},
            "max_table_nesting": 0,
        }],
    })


pipeline = dlt.pipeline("subscriptions", destination="postgres", dataset_name="commerce")
pipeline.sync_destination()  # the cursor, too, is in the database
try:
    pipeline.run(commerce())
except PipelineStepFailed as failed:
    if "410 Client Error" not in str(failed):
        raise
    pipeline.run(commerce(again=True), refresh="drop_sources")
