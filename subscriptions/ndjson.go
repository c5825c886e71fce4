package subscriptions

import "commerce/cart/wire"

// ndjson writes each line as a JSON object with one member.
type ndjson struct{ w *wire.Writer }

func (n *ndjson) reset() { n.w.Reset(n.w.Language) }

func (n *ndjson) bytes() []byte { return n.w.Bytes() }

func (n *ndjson) changed(v *view, s *Subscription, digits int) {
	n.w.BeginObject()
	n.w.Member("subscription")
	v.full(s, digits)
	n.end()
}

func (n *ndjson) deleted(v *view, d Deletion) {
	n.w.BeginObject()
	n.w.Member("deleted")
	v.deletion(d)
	n.end()
}

func (n *ndjson) next(cursor string) {
	n.w.BeginObject()
	n.w.Text("next", cursor)
	n.end()
}

func (n *ndjson) end() {
	n.w.EndObject()
	n.w.EndLine()
}
