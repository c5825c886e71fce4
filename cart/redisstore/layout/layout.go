// Package layout is how carts, and what transfers keep next to them, are stored in hashes of Redis. It is pure: package
// redisstore reads and writes the hashes.
package layout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	fastjson "github.com/go-json-experiment/json"

	"commerce/cart"
	"commerce/cart/money"
)

// A cart is one hash. Members of lines begin with a digit, the cart's own with a letter. Its short values let Redis keep it small,
// and all times are by the clock of its Redis: the clocks of the service's instances differ.
//
//	42.p41           "<quantity> <order> <unit price when added>"   one member a line
//	42.p41:f         "<bytes of text> <fields as JSON>"             only lines with fields
//	42.p41:n         the notice                                     only lines with a notice
//	42.p41:m         "<bytes of values> <metadata as JSON>"         only lines with metadata
//	i                cart ID
//	v                "<version>.<mark>": the mark, which each change brings, is random, so that
//	                 a version that a failover or a backup takes back is not taken for
//	                 the next one of that number
//	c                the codes of coupons, with a unit separator between two
//	y                "<country of the buyer> <source>"
//	d                "<bytes of values> <the cart's metadata as JSON>"
//	a                "<version>.<mark>|<version>.<mark>": since which its agent alone has changed it, and at which the agent's
//	                 last change has left it; - once the agent has canceled it, 0.0 in a cart that a hand-over has begun
//	x                when the cart expires, in seconds: HGETALL does not return the TTL
//	l                the number of the layout
//	n                the fence: the marks of the last decisions, ten at most, that have written the cart, the newest last
//	                 (see redisstore/commit.go). Every write appends its own
//	t                "<ms> <name>": until when only what has that name may commit (see commit.lua)
//	b                "<line> <seconds> …": lines that were removed beside others of their product, the latest first
//	r1 … r4 e<stamp> changes that a retry would repeat (see cart.Stamps)
//	m<name>          a request is merging a guest's cart into this one; mh… is a hand-over:
//	                 "<guest's digest> <seconds> <lines> <bytes of text> <guest's cart ID, cut>",
//	                 and " applied" once its lines are here
//	g                the report of the latest merge, for a minute:
//	                 "<ms> <name> <lines>", and for each line that was cut
//	                 " <line> <requested> <kept> <code>"
//	u                in a guest's cart that the undo of a merge has begun: the tag of the customer's cart,
//	                 whose requests do not merge it again
//	w                until when a change is announced to those who listen, and how: "<seconds> <command>"
//	o                in a claimed guest cart: "<new owner's tag> <member of the note> <random name of the claim>"
//	k                in a claimed guest cart: " <digest>=<ms> … ", of the token's idempotency keys

// ErrLayout means that a cart's hash has another layout, or a value that no release writes.
var ErrLayout = errors.New("layout: not a cart's layout")

// Number is that of the layout that this release knows.
const Number = "3"

// Hash is what the hash of a cart has. The zero value: there is none.
type Hash struct {
	cart.Cell

	Number string  // of the layout
	Fence  string  // the member n
	Orders []int64 // of the lines, ascending
}

// Parse parses a cart's hash: member, value, member, value, … The error is ErrLayout.
func Parse(flat []string) (Hash, error) {
	if len(flat) == 0 {
		return Hash{}, nil
	}
	h, err := ParseAny(flat)
	if err == nil && h.Number != Number {
		err = fmt.Errorf("%w: number %q, this release knows %s", ErrLayout, h.Number, Number)
	}
	return h, err
}

// ParseAny parses a cart's hash in the layout of any release, as far as this one knows it.
func ParseAny(flat []string) (Hash, error) {
	var c Hash
	lines := make([]cart.Line, 0, countLines(flat))
	orders := make([]int64, 0, cap(lines))
	var texts map[string]string
	for i := 0; i+1 < len(flat); i += 2 {
		member, value := flat[i], flat[i+1]
		switch {
		case !OfLine(member):
			if err := c.parseMember(member, value); err != nil {
				return Hash{}, err
			}
		case strings.IndexByte(member, ':') >= 0:
			if texts == nil {
				texts = make(map[string]string, cap(lines))
			}
			texts[member] = value
		default:
			line, order, err := parseLine(member, value)
			if err != nil {
				return Hash{}, err
			}
			lines, orders = append(lines, line), append(orders, order)
		}
	}
	if len(lines) > cart.MergeFactor*cart.MaxLines {
		return Hash{}, fmt.Errorf("%d lines: %w", len(lines), ErrLayout)
	}
	if c.ID == "" { // only notes or stamps: there is no cart yet
		c.Cart, c.Agent, c.Report, c.Removed, c.UndoneBy = cart.Cart{}, "", nil, nil, ""
		return c, nil
	}
	if !slices.IsSorted(orders) { // Redis keeps small hashes in the order in which lines were added
		sort.Sort(byOrder{lines, orders})
	}
	c.Lines, c.Orders = lines, orders
	return c, addTexts(lines, texts)
}

// parseMember parses a member of the cart itself.
func (c *Hash) parseMember(member, value string) (err error) {
	kind := member
	if len(member) > 1 {
		kind = member[:1] + "…"
	}
	switch kind {
	case "i":
		if !isName(value) {
			return fmt.Errorf("cart ID: %w", ErrLayout)
		}
		c.ID = value
	case "v":
		version, mark, _ := strings.Cut(value, ".")
		n, err := strconv.ParseInt(version, 10, 64)
		if err != nil || n < 1 || !isName(mark) {
			return fmt.Errorf("version: %w", ErrLayout)
		}
		c.Version, c.Mark = n, mark
	case "c":
		c.Coupons = parseCodes(value)
	case "y":
		c.Buyer = parseBuyer(value)
	case "d":
		if c.Metadata, err = decodeMetadata(value); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
	case "a":
		c.Agent = value
	case "u":
		c.UndoneBy = value
	case "l":
		c.Number = value
	case "n":
		c.Fence = value
	case "x":
		c.Expires, _ = strconv.ParseInt(value, 10, 64)
	case "w":
		until, by, _ := strings.Cut(value, " ")
		c.Listened.By = by
		c.Listened.Until, _ = strconv.ParseInt(until, 10, 64)
	case "g":
		if c.Report, err = parseReport(value); err != nil {
			return err
		}
	case "b":
		c.Removed = parseRemoved(value)
	case "r…":
		if n := strings.IndexByte("1234", member[len(member)-1]); len(member) == 2 && n >= 0 {
			c.Stamps.Parts[n] = value
		}
	case "e…":
		if c.Stamps.Lines == nil {
			c.Stamps.Lines = map[string]cart.LineID{}
		}
		c.Stamps.Lines[member[1:]] = cart.LineID(value)
	case "m…":
		c.Pending = append(c.Pending, parseNote(member, value))
	}
	return nil
}

// byOrder sorts lines with their orders.
type byOrder struct {
	lines  []cart.Line
	orders []int64
}

func (b byOrder) Len() int           { return len(b.lines) }
func (b byOrder) Less(i, j int) bool { return b.orders[i] < b.orders[j] }
func (b byOrder) Swap(i, j int) {
	b.lines[i], b.lines[j] = b.lines[j], b.lines[i]
	b.orders[i], b.orders[j] = b.orders[j], b.orders[i]
}

// encodeCodes joins codes, which have no control characters, because nobody can enter one; "" for none.
func encodeCodes(codes []string) string { return strings.Join(codes, "\x1f") }

func parseCodes(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, "\x1f")
}

func parseBuyer(value string) cart.Buyer {
	country, source, _ := strings.Cut(value, " ")
	return cart.Buyer{Country: country, Source: cart.BuyerSource(source)}
}

func encodeBuyer(b cart.Buyer) string {
	if b == (cart.Buyer{}) {
		return ""
	}
	return b.Country + " " + string(b.Source)
}

// parseRemoved parses "<line> <seconds> …", the latest first.
func parseRemoved(value string) (all cart.RemovedLines) {
	for two := range slices.Chunk(strings.Fields(value), 2) {
		if len(two) == 2 {
			at, _ := strconv.ParseInt(two[1], 10, 64)
			all = append(all, cart.RemovedLine{ID: cart.LineID(two[0]), At: at})
		}
	}
	return all
}

// maxName is how long the ID of a cart or of a line may be.
const maxName = 64

// isName reports whether the store writes such an ID or mark, which clients get in a header.
func isName(text string) bool {
	for i := range len(text) {
		switch b := text[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return 0 < len(text) && len(text) <= maxName
}

// OfLine reports whether a member of a cart's hash is of a line.
func OfLine(member string) bool { return member != "" && '0' <= member[0] && member[0] <= '9' }

// countLines returns the number of lines of a cart, or a few more if lines have texts.
func countLines(flat []string) int {
	n := 0
	for i := 0; i+1 < len(flat); i += 2 {
		if OfLine(flat[i]) {
			n++
		}
	}
	return n
}

func addTexts(lines []cart.Line, texts map[string]string) error {
	if texts == nil {
		return nil
	}
	for i := range lines {
		l := &lines[i]
		var err error
		if l.Fields, err = decodeFields(texts[string(l.ID)+":f"]); err != nil {
			return fmt.Errorf("fields of line %s: %w", l.ID.Item(), err)
		}
		l.Notice = texts[string(l.ID)+":n"]
		if l.Metadata, err = decodeMetadata(texts[string(l.ID)+":m"]); err != nil {
			return fmt.Errorf("metadata of line %s: %w", l.ID.Item(), err)
		}
	}
	return nil
}

// parseLine parses "<quantity> <order> <unit price when added>".
func parseLine(id, value string) (_ cart.Line, order int64, _ error) {
	quantity, rest, _ := strings.Cut(value, " ")
	place, price, _ := strings.Cut(rest, " ")
	q, err1 := strconv.ParseInt(quantity, 10, 64)
	order, err2 := strconv.ParseInt(place, 10, 64)
	p, err3 := strconv.ParseInt(price, 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || q < 1 || q > cart.MaxQuantity || len(id) > maxName {
		return cart.Line{}, 0, fmt.Errorf("line %s: %w", cart.LineID(id).Item(), ErrLayout)
	}
	return cart.Line{ID: cart.LineID(id), Quantity: q, AddedPrice: money.Amount(p)}, order, nil
}

// encodeFields returns fields as a cart stores them: the size of their text in bytes, which nothing reads, and a JSON list of names and values. "" for none.
func encodeFields(fields []cart.FieldValue) string {
	if len(fields) == 0 {
		return ""
	}
	pairs := make([][2]string, len(fields))
	for i, f := range fields {
		pairs[i] = [2]string{f.Name, f.Value}
	}
	body, _ := json.Marshal(pairs) // strings always marshal
	return strconv.FormatInt(cart.TextSize(fields), 10) + " " + string(body)
}

func decodeFields(s string) ([]cart.FieldValue, error) {
	if s == "" {
		return nil, nil
	}
	_, body, _ := strings.Cut(s, " ")
	if fields, ok := splitFields(body); ok {
		return fields, nil
	}
	var pairs [][2]string
	if err := fastjson.Unmarshal([]byte(body), &pairs); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	fields := make([]cart.FieldValue, len(pairs))
	for i, p := range pairs {
		fields[i] = cart.FieldValue{Name: p[0], Value: p[1]}
	}
	return fields, nil
}

// encodeMetadata returns metadata, or changes of it, as a cart stores them: the size of the values in
// bytes, and a JSON object. "" for none.
func encodeMetadata(m cart.Metadata) string {
	if len(m) == 0 {
		return ""
	}
	body, _ := json.Marshal(m) // strings always marshal
	return strconv.FormatInt(m.TextSize(), 10) + " " + string(body)
}

func decodeMetadata(s string) (m cart.Metadata, err error) {
	if s == "" {
		return nil, nil
	}
	_, body, _ := strings.Cut(s, " ")
	if err := fastjson.Unmarshal([]byte(body), &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	return m, nil
}

// splitFields decodes fields without escapes, which most are. Every read of a cart decodes the fields of
// all lines, and a JSON decoder takes several times as long.
func splitFields(body string) ([]cart.FieldValue, bool) {
	body, found := strings.CutPrefix(body, `[["`)
	body, ended := strings.CutSuffix(body, `"]]`)
	if !found || !ended || strings.IndexByte(body, '\\') >= 0 || !utf8.ValidString(body) {
		return nil, false
	}
	fields := make([]cart.FieldValue, 0, 1+strings.Count(body, `"],["`))
	for pair := range strings.SplitSeq(body, `"],["`) {
		name, value, ok := strings.Cut(pair, `","`)
		if !ok || strings.Contains(name, `"`) || strings.Contains(value, `"`) {
			return nil, false
		}
		fields = append(fields, cart.FieldValue{Name: name, Value: value})
	}
	return fields, true
}

// parseReport parses what the store keeps of the latest merge: "<ms> <name> <lines>", and for
// each line that was cut " <line> <requested> <kept> <code>". It returns nil for "".
func parseReport(value string) (*cart.MergeReport, error) {
	if value == "" {
		return nil, nil
	}
	words := strings.Fields(value)
	if len(words)%4 != 3 {
		return nil, fmt.Errorf("report of a merge: %w", ErrLayout)
	}
	var failed error
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		failed = cmp.Or(failed, err)
		return n
	}
	report := &cart.MergeReport{ID: words[1], At: time.UnixMilli(number(words[0])), Lines: number(words[2])}
	adjusted, err := parseAdjusted(words[3:])
	if failed = cmp.Or(failed, err); failed != nil {
		return nil, fmt.Errorf("report of a merge: %w: %w", ErrLayout, failed)
	}
	report.Adjusted = adjusted
	return report, nil
}

// parseAdjusted parses four words for each line: its ID, the requested and the kept quantity, and the code.
func parseAdjusted(words []string) (all []cart.Adjustment, failed error) {
	for four := range slices.Chunk(words, 4) {
		a := cart.Adjustment{Line: cart.LineID(four[0])}
		_, err := fmt.Sscan(strings.Join(four[1:], " "), &a.Requested, &a.Kept, &a.Code)
		failed = cmp.Or(failed, err)
		all = append(all, a)
	}
	return all, failed
}

// parseNote parses "<guest's digest> <seconds> <lines> <bytes of text> <guest's cart ID, cut>", and " applied".
func parseNote(member, value string) cart.Note {
	note := cart.Note{Name: member}
	word := strings.Fields(value)
	if len(word) < 5 {
		return note
	}
	seconds, _ := strconv.ParseInt(word[1], 10, 64)
	note.Guest, note.At, note.CartID, note.Applied = word[0], time.Unix(seconds, 0), word[4], len(word) > 5
	note.Lines, _ = strconv.ParseInt(word[2], 10, 64)
	note.Text, _ = strconv.ParseInt(word[3], 10, 64)
	return note
}
