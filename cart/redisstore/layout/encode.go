package layout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/cart"
)

// Encode returns what makes the hash of a cart as it was read that of the cell, and the hash that it then is. fence is its
// fence afterwards.
func Encode(before *Hash, after cart.Cell, fence string) (Members, Hash) {
	hash := Hash{Cell: after, Number: Number, Fence: fence}
	m := Members{Set: []any{"n", fence}}
	m.put("l", before.Number, Number)
	m.put("i", before.ID, after.ID)
	m.put("v", versionOf(&before.Cart), versionOf(&after.Cart))
	m.put("c", encodeCodes(before.Coupons), encodeCodes(after.Coupons))
	m.put("y", encodeBuyer(before.Buyer), encodeBuyer(after.Buyer))
	m.put("a", before.Agent, after.Agent)
	m.put("x", seconds(before.Expires), seconds(after.Expires))
	m.put("u", before.UndoneBy, after.UndoneBy)
	m.put("w", EncodeListening(before.Listened), EncodeListening(after.Listened))
	if before.Report != after.Report {
		m.put("g", encodeReport(before.Report), encodeReport(after.Report))
	}
	m.notes(before.Pending, after.Pending)
	if !slices.Equal(before.Removed, after.Removed) {
		m.put("b", encodeRemoved(before.Removed), encodeRemoved(after.Removed))
	}
	m.metadata("d", before.Metadata, after.Metadata)
	m.stamps(&before.Stamps, &after.Stamps)
	hash.Orders = m.lines(before, after.Lines)
	return m, hash
}

// notes changes the notes of merges.
func (m *Members) notes(before, after cart.Notes) {
	named := func(all cart.Notes, name string) int {
		return slices.IndexFunc(all, func(n cart.Note) bool { return n.Name == name })
	}
	for _, n := range after {
		if i := named(before, n.Name); i < 0 || before[i] != n {
			m.Set = append(m.Set, n.Name, encodeNote(n))
		}
	}
	for _, n := range before {
		if named(after, n.Name) < 0 {
			m.Gone = append(m.Gone, n.Name)
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

// Members are the members of a cart's hash that a commit sets, with their values, and those that it removes.
type Members struct{ Set, Gone []any }

// put changes a member from one value to another; "" is none.
func (m *Members) put(member, before, after string) {
	switch {
	case before == after:
	case after == "":
		m.Gone = append(m.Gone, member)
	default:
		m.Set = append(m.Set, member, after)
	}
}

func (m *Members) metadata(member string, before, after cart.Metadata) {
	if !maps.Equal(before, after) {
		m.put(member, encodeMetadata(before), encodeMetadata(after))
	}
}

func (m *Members) stamps(before, after *cart.Stamps) {
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
func (m *Members) lines(before *Hash, after []cart.Line) []int64 {
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
			orders[i], at = before.Orders[was], was+1
		case at < len(kept) && was < 0 && !slices.ContainsFunc(after, func(l cart.Line) bool { return l.ID == before.Lines[at].ID }):
			orders[i] = before.Orders[at] // it was edited to this one
			at++
		default:
			orders[i] = 1 + lastOf(before.Orders)
		}
		if i > 0 && orders[i] <= orders[i-1] {
			orders[i] = 1 + max(orders[i-1], lastOf(before.Orders))
		}
		if was < 0 {
			m.line(nil, l, 0, orders[i])
		} else {
			kept[was] = true
			m.line(&before.Lines[was], l, before.Orders[was], orders[i])
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
func (m *Members) line(before, after *cart.Line, oldOrder, order int64) {
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
		m.Gone = append(m.Gone, id)
	} else if was.Quantity != is.Quantity || was.AddedPrice != is.AddedPrice || oldOrder != order {
		m.Set = append(m.Set, id, encodeLine(is, order))
	}
	if (len(was.Fields) > 0) != (len(is.Fields) > 0) { // the ID stands for their values
		m.put(id+":f", encodeFields(was.Fields), encodeFields(is.Fields))
	}
	if was.Notice != is.Notice {
		m.put(id+":n", was.Notice, is.Notice)
	}
	if len(was.Metadata) > 0 || len(is.Metadata) > 0 {
		m.metadata(id+":m", was.Metadata, is.Metadata)
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

func EncodeListening(l cart.Listening) string {
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

// CopyOf returns the members of a copy of a cart's lines, without the cart's ID: a hash in its layout.
func CopyOf(lines []cart.Line, expires time.Time) []any {
	members := []any{"l", Number, "x", seconds(expires.Unix())}
	for i, l := range lines {
		members = append(members, string(l.ID), encodeLine(cart.Line{Quantity: l.Quantity}, int64(i)))
		if len(l.Fields) > 0 {
			members = append(members, string(l.ID)+":f", encodeFields(l.Fields))
		}
	}
	return members
}
