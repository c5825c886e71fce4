package feed

import (
	"commerce/cart/wire"
	"commerce/subscriptions/formats"
	"commerce/subscriptions/subscriptionshttp"
)

// lines writes the lines of a page of a stream, with the same members in each format.
type lines interface {
	subscriptionshttp.Members
	begin(kind string)                // begins the line of a subscription or of a deletion
	end()                             // ends it
	next(cursor string) (page []byte) // ends the page
}

// newLines returns the lines of a request. w must be empty.
func newLines(r *request, w *wire.Writer) lines {
	switch {
	case r.plain:
		return plainCSV{formats.NewTable(csvColumns[2:])}
	case r.format == formats.CSV:
		return csv{formats.NewTable(csvColumns)}
	}
	return ndjson{w}
}

// writeLines returns the lines of a page. They are valid until the next page.
func writeLines(to lines, v *subscriptionshttp.View, c *Changes, store int64) []byte {
	for _, d := range c.Deleted {
		to.begin("deleted")
		writeDeletion(v, d)
		to.end()
	}
	for i := range c.Changed {
		to.begin("subscription")
		v.Full(&c.Changed[i])
		to.end()
	}
	return to.next(OfChanges.Text(c.Next, store))
}

// ndjson writes each line as a JSON object with one member.
type ndjson struct{ *wire.Writer }

func (n ndjson) begin(kind string) {
	n.BeginObject()
	n.Object(kind)
}

func (n ndjson) end() {
	n.EndObject()
	n.EndObject()
	n.EndLine()
}

func (n ndjson) next(cursor string) []byte {
	n.BeginObject()
	n.Text("next", cursor)
	n.EndObject()
	n.EndLine()
	defer n.Reset(n.Language)
	return n.Bytes()
}

// csvColumns are the columns of changes in CSV: the kind of the line (row, deleted or next), the cursor
// of a next, and the members of a single subscription in their order, nested ones with a dot.
var csvColumns = []string{
	"kind", "cursor", "id", "status", "external_customer_id", "starts_at", "ends_at", "start_date", "end_date",
	"current_period_start", "current_period_end", "trial_ends_at", "cancel_at_period_end", "canceled_at",
	"duration", "order_id", "auto_renew", "price.amount", "price.formatted", "price.currency",
	"product.id", "product.name", "product.slug", "product.type",
	"variant.id", "variant.duration", "variant.duration_text", "variant.price",
	"payment_method.last_four", "payment_method.scheme", "metadata", "features",
	"is_active", "is_expired", "days_remaining", "grace_ends_at", "created_at", "updated_at",
	"scheduled_variant.id", "scheduled_variant.duration", "scheduled_variant.duration_text", "scheduled_variant.price",
	"cancellation_reason", "paused_at", "paused_remaining_days", "next_retry_at", "deleted_at",
}

// csv has a line for each change, and one for the cursor at the end of a page.
type csv struct{ *formats.Table }

func (c csv) begin(kind string) {
	if kind == "subscription" {
		kind = "row"
	}
	c.Text("kind", kind)
}

func (c csv) end() { c.End() }

func (c csv) next(cursor string) []byte {
	c.Text("kind", "next")
	c.Text("cursor", cursor)
	c.End()
	return c.Page()
}

// plainCSV has only rows, without the columns kind and cursor.
type plainCSV struct{ *formats.Table }

func (p plainCSV) begin(string)       {}
func (p plainCSV) end()               { p.End() }
func (p plainCSV) next(string) []byte { return p.Page() }

// writeChanges writes a page as JSON.
func writeChanges(w *wire.Writer, v *subscriptionshttp.View, c *Changes, store int64) {
	w.BeginObject()
	w.Array("data")
	for i := range c.Changed {
		w.BeginObject()
		v.Full(&c.Changed[i])
		w.EndObject()
	}
	w.EndArray()
	w.Array("deleted")
	for _, d := range c.Deleted {
		w.BeginObject()
		writeDeletion(v, d)
		w.EndObject()
	}
	w.EndArray()
	w.Text("next", OfChanges.Text(c.Next, store))
	w.Bool("has_more", c.More)
	w.EndObject()
}

func writeDeletion(v *subscriptionshttp.View, d Deletion) {
	v.Number("id", d.ID)
	v.Instant("deleted_at", d.At)
}
