package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/cart"
)

// encode adds to a commit what makes the cart as it was read the cell after a decision, and returns how it is then stored.
// now is the time of the decision, and ttl that of the cart.
func (c *commit) encode(before *Stored, after cart.Cell, ttl time.Duration, now time.Time) (Stored, time.Duration) {
	after, left, renewed := after.Expiring(ttl, now)
	stored := Stored{Cell: after, layout: layout, fence: c.nextFence()}
	m := members{set: []any{"n", stored.fence}}
	m.put("l", before.layout, layout)
	m.put("i", before.ID, after.ID)
	m.put("v", versionOf(&before.Cart), versionOf(&after.Cart))
	m.put("c", encodeCodes(before.Coupons), encodeCodes(after.Coupons))
	m.put("y", encodeBuyer(before.Buyer), encodeBuyer(after.Buyer))
	m.put("a", before.Agent, after.Agent)
	m.put("x", seconds(before.Expires), seconds(after.Expires))
	m.put("u", before.UndoneBy, after.UndoneBy)
	m.put("w", encodeListening(before.Listened), encodeListening(after.Listened))
	if before.Report != after.Report {
		m.put("g", encodeReport(before.Report), encodeReport(after.Report))
	}
	m.notes(before.Pending, after.Pending)
	if !slices.Equal(before.Removed, after.Removed) {
		m.put("b", encodeRemoved(before.Removed), encodeRemoved(after.Removed))
	}
	m.metadata("d", before.Metadata, after.Metadata)
	m.stamps(&before.Stamps, &after.Stamps)
	stored.orders = m.lines(before, after.Lines)

	key := c.keys[0]
	if len(m.gone) > 0 {
		c.write("HDEL", key, m.gone...)
	}
	c.write("HSET", key, m.set...)
	if renewed {
		c.write("PEXPIRE", key, left.Milliseconds())
	}
	return stored, left
}

// notes changes the notes of merges.
func (m *members) notes(before, after cart.Notes) {
	named := func(all cart.Notes, name string) int {
		return slices.IndexFunc(all, func(n cart.Note) bool { return n.Name == name })
	}
	for _, n := range after {
		if i := named(before, n.Name); i < 0 || before[i] != n {
			m.set = append(m.set, n.Name, encodeNote(n))
		}
	}
	for _, n := range before {
		if named(after, n.Name) < 0 {
			m.gone = append(m.gone, n.Name)
		}
	}
}

// versionOf is the version as it is stored; "" for none.
func versionOf(c *cart.Cart) string {
	if c.ID == "" {
		return ""
	}
	return c.Moment()
}

// members are the members of a cart's hash that a commit sets, with their values, and those that it removes.
type members struct{ set, gone []any }

// put changes a member from one value to another; "" is none.
func (m *members) put(member, before, after string) {
	switch {
	case before == after:
	case after == "":
		m.gone = append(m.gone, member)
	default:
		m.set = append(m.set, member, after)
	}
}

func (m *members) metadata(member string, before, after cart.Metadata) {
	if !maps.Equal(before, after) {
		m.put(member, encodeMetadata(before), encodeMetadata(after))
	}
}

func (m *members) stamps(before, after *cart.Stamps) {
	for i := range after.Parts {
		m.put("r"+strconv.Itoa(i+1), before.Parts[i], after.Parts[i])
	}
	for stamp, line := range after.Lines {
		m.put("e"+stamp, string(before.Lines[stamp]), string(line))
	}
	for stamp, line := range before.Lines {
		if after.Lines[stamp] == "" {
			m.put("e"+stamp, string(line), "")
		}
	}
}

// lines changes the lines, and returns their orders. A line keeps its order if those before it are lower; another one at its
// place gets it; and one at the end gets the next.
func (m *members) lines(before *Stored, after []cart.Line) []int64 {
	orders, kept := make([]int64, len(after)), make([]bool, len(before.Lines))
	at := 0 // the place in before
	for i := range after {
		l := &after[i]
		was := at
		if at == len(kept) || before.Lines[at].ID != l.ID {
			was = slices.IndexFunc(before.Lines, func(b cart.Line) bool { return b.ID == l.ID })
		}
		switch {
		case was >= at: // of the lines before it, none is left
			orders[i], at = before.orders[was], was+1
		case at < len(kept) && was < 0 && !slices.ContainsFunc(after, func(l cart.Line) bool { return l.ID == before.Lines[at].ID }):
			orders[i] = before.orders[at] // it was edited to this one
			at++
		default:
			orders[i] = 1 + lastOf(before.orders)
		}
		if i > 0 && orders[i] <= orders[i-1] {
			orders[i] = 1 + max(orders[i-1], lastOf(before.orders))
		}
		if was < 0 {
			m.line(nil, l, 0, orders[i])
		} else {
			kept[was] = true
			m.line(&before.Lines[was], l, before.orders[was], orders[i])
		}
	}
	for i := range before.Lines {
		if !kept[i] {
			m.line(&before.Lines[i], nil, 0, 0)
		}
	}
	return orders
}

func lastOf(orders []int64) int64 {
	if len(orders) == 0 {
		return 0
	}
	return orders[len(orders)-1]
}

// line changes a line; nil is none.
func (m *members) line(before, after *cart.Line, oldOrder, order int64) {
	var was, is cart.Line
	if before != nil {
		was = *before
	}
	if after != nil {
		is = *after
	}
	id := string(is.ID)
	if after == nil {
		id = string(was.ID)
		m.gone = append(m.gone, id)
	} else if was.Quantity != is.Quantity || was.AddedPrice != is.AddedPrice || oldOrder != order {
		m.set = append(m.set, id, encodeLine(is, order))
	}
	if (len(was.Fields) > 0) != (len(is.Fields) > 0) { // the ID stands for their values
		m.put(id+":f", encodeFields(was.Fields), encodeFields(is.Fields))
	}
	if was.Notice != is.Notice {
		m.put(id+":n", was.Notice, is.Notice)
	}
	m.lineMetadata(id, was.Metadata, is.Metadata)
}

func (m *members) lineMetadata(id string, was, is cart.Metadata) {
	if len(was) > 0 || len(is) > 0 {
		m.metadata(id+":m", was, is)
	}
}

// encodeLine returns "<quantity> <order> <unit price when added>".
func encodeLine(l cart.Line, order int64) string {
	text := strconv.AppendInt(make([]byte, 0, 24), l.Quantity, 10)
	text = strconv.AppendInt(append(text, ' '), order, 10)
	return string(strconv.AppendInt(append(text, ' '), int64(l.AddedPrice), 10))
}

func encodeRemoved(all cart.RemovedLines) string {
	words := make([]string, 0, 2*len(all))
	for _, l := range all {
		words = append(words, string(l.ID), seconds(l.At))
	}
	return strings.Join(words, " ")
}

func seconds(at int64) string {
	if at == 0 {
		return ""
	}
	return strconv.FormatInt(at, 10)
}

func encodeListening(l cart.Listening) string {
	if l.By == "" {
		return ""
	}
	return strconv.FormatInt(l.Until, 10) + " " + l.By
}

// encodeReport is the inverse of parseReport.
func encodeReport(r *cart.MergeReport) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %d", r.At.UnixMilli(), r.ID, r.Lines)
	for _, a := range r.Adjusted {
		fmt.Fprintf(&b, " %s %d %d %s", a.Line, a.Requested, a.Kept, a.Code)
	}
	return b.String()
}

// encodeNote is the inverse of parseNote.
func encodeNote(n cart.Note) string {
	text := fmt.Sprintf("%s %d %d %d %s", n.Guest, n.At.Unix(), n.Lines, n.Text, n.CartID)
	if n.Applied {
		text += " applied"
	}
	return text
}
