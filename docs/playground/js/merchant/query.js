// The query of GET /subscriptions: what the filters ask for, and where in the list.

const filters = ["status", "customerEmail", "customerPhone", "customerCountryCode", "externalCustomerId"];

/** filtersIn returns the [name, value] pairs of a query that select rows. */
export function filtersIn(query) {
  return Array.from(new URLSearchParams(query)).filter(([name]) => filters.includes(name));
}

/** without returns a query without a filter. It starts at the first page. */
export function without(query, name) {
  return edited(query, (parameters) => parameters.delete(name));
}

/** atPage returns a query for a page by its number. */
export function atPage(query, page) {
  return edited(query, (parameters) => parameters.set("page", page));
}

/** inStates returns a query for the rows in these states, or in any if there are none. */
export function inStates(query, states) {
  return edited(query, (parameters) => {
    if (states.length > 0) parameters.set("status", states.join(","));
    else parameters.delete("status");
  });
}

/**
 * ofLink returns the query of a page link. The links are absolute; the page uses only their
 * query and stays on its own origin.
 */
export function ofLink(link) {
  return spelled(new URL(link, document.baseURI).searchParams);
}

/** queryOf returns a query of a form's values. An empty parameter would be refused. */
export function queryOf(values) {
  return spelled(new URLSearchParams(values.filter(([, value]) => value !== "")));
}

function edited(query, edit) {
  const parameters = new URLSearchParams(query);
  parameters.delete("page");
  parameters.delete("cursor"); // valid only for the page that it came with
  edit(parameters);
  return spelled(parameters);
}

// Commas are allowed in a query, and "status=active,past_due" is easier to read in the log.
function spelled(parameters) {
  return parameters.size > 0 ? `?${parameters}`.replaceAll("%2C", ",") : "";
}
