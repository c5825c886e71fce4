package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// FuzzSubscriptions reads subscriptions from Postgres. Without cursors, the answers must equal
// those of a shop with the same subscriptions in memory. The service must accept every link of a
// list and every cursor of changes that it has returned. "{cursor}" in the query stands for a
// cursor with the given position. Any position is possible, because cursors have no signature.
func FuzzSubscriptions(f *testing.F) {
	for _, query := range []string{
		"page=2&per_page=5", "customerEmail=SARA@example.com", "customerPhone=%2B966501234567", "customerCountryCode=966",
		"status=active,canceled&per_page=3", "status=active,", "externalCustomerId=crm-7", "externalCustomerId=%00",
		"orderId=5001", "ids=5001,5002,7", "productId=4&variantId=41", "cancelAtPeriodEnd=true", "createdFrom=2025-01-01&createdTo=2026-01-01", "sort=periodEnd&per_page=5&status=past_due,active", "sort=periodEnd&periodEndFrom=2025-11-20&periodEndTo=2025-12-20",
		"page=0", "per_page=101", "cursor=AAAA", "customerMail=x", "page=1&page=2", "%zz", "customerEmail=%00@x", "a;b",
		"from=2025-01&to=2025-12", "from=2025-1",
		"customerEmail=%ff@x", "externalCustomerId=%ed%a0%80", "customerEmail=%25_%27%22%5C@x", "customerPhone=%D9%A5%D9%A0",
	} {
		f.Add(query, "1", "", []byte(nil))
	}
	f.Add("", "9223372036854775808", "text/csv", []byte(nil))
	f.Add("plain=1", "1", "text/csv", []byte(nil))
	f.Add("limit=3", "5001", "application/x-ndjson;q=0.2", []byte(nil))
	f.Add("after={cursor}&limit=1000", "0", "application/json", position(1, 1, 1, 1))
	f.Add("after={cursor}", "-1", "application/x-ndjson", position(0, 1<<63, 1<<64-1, 1<<63-1))
	f.Add("after={cursor}", "05001", "text/csv", position(1<<64-1, 0, 1<<32, 1<<63))
	s := openFuzzed(f)
	memory := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, query, id, accept string, place []byte) {
		s.begin(t)
		r := subscriptionReader{shopper: s.merchant(t), twin: memory.merchant(t), accept: accept}
		query = strings.ReplaceAll(query, "{cursor}", r.cursor(place))
		r.one(id)
		if _, err := url.Parse("/subscriptions?" + query); err != nil || strings.ContainsAny(query, "# \t\r\n") {
			t.Skip("no query that a client can send")
		}
		r.list(query)
		r.changes(query)
		r.get("/subscriptions/5001/history?" + query)
		a := r.get("/subscriptions/summary?" + query)
		assert.Require(t, (a.Status == http.StatusOK) == (query == ""), "the summary with %q: %d", query, a.Status)
		r.same("/subscriptions/metrics?"+query, "Accept", accept)
	})
}

// subscriptionReader reads from a shop and from its twin.
type subscriptionReader struct {
	*shopper
	twin   *shopper
	accept string
}

func (r subscriptionReader) get(path string, headers ...string) answer {
	r.t.Helper()
	return r.fuzzed("GET", path, nil, headers...)
}

// same makes a call that both shops must answer with the same status and the same IDs.
func (r subscriptionReader) same(path string, headers ...string) answer {
	r.t.Helper()
	a := r.get(path, headers...)
	b := r.twin.fuzzed("GET", path, nil, headers...)
	assert.Require(r.t, a.Status == b.Status && a.Body.Code == b.Body.Code && idsOf(a) == idsOf(b), "%s: %d %s, in memory %d %s", path, a.Status, a.Raw, b.Status, b.Raw)
	return a
}

var memberID = regexp.MustCompile(`"id":[^,]*`)

func idsOf(a answer) string { return fmt.Sprintf("%s", memberID.FindAll(a.Raw, -1)) }

func (r subscriptionReader) one(id string) {
	r.t.Helper()
	a := r.same("/subscriptions/" + url.PathEscape(id))
	assert.Require(r.t, a.Status == http.StatusOK || a.Status == http.StatusNotFound, "%q: %d", id, a.Status)
}

func (r subscriptionReader) list(query string) {
	r.t.Helper()
	read := r.same
	if strings.Contains(query, "cursor=") {
		read = r.get
	}
	a := read("/subscriptions?" + query)
	if a.Status != http.StatusOK {
		return
	}
	page := a.list(r.t)
	for _, link := range []string{page.NextURL, page.PrevURL} {
		assert.Require(r.t, link == "" || r.get(strings.TrimPrefix(link, r.shop.URL)).Status == http.StatusOK, "%q gave the link %q, which is refused", query, link)
	}
}

func (r subscriptionReader) changes(query string) {
	r.t.Helper()
	read := r.same
	if strings.Contains(query, "after=") {
		read = r.get
	}
	a := read("/subscriptions/changes?"+query, "Accept", r.accept)
	if a.Status != http.StatusOK || strings.Contains(query, "plain=") { // a table without cursors
		return
	}
	next := ""
	switch media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";"); media {
	case "application/json":
		next = a.list(r.t).Next
	case "text/csv":
		next = lastOf(string(a.Raw), "next,", ",")
	default:
		next = lastOf(string(a.Raw), `{"next":"`, `"`)
	}
	assert.Require(r.t, next != "" && r.get("/subscriptions/changes?after="+next).Status == http.StatusOK, "%q gave the cursor %q, which is refused", query, next)
}

// lastOf returns the text between before and after in the last line of a stream, or "" if the
// line does not begin with before.
func lastOf(stream, before, after string) string {
	lines := strings.Split(strings.TrimRight(stream, "\r\n"), "\n")
	rest, ok := strings.CutPrefix(lines[len(lines)-1], before)
	value, _, ended := strings.Cut(rest, after)
	if !ok || !ended {
		return ""
	}
	return value
}

// position returns the end of a cursor: numbers as the service writes them.
func position(numbers ...uint64) (b []byte) {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// cursor returns a cursor of this database with any position and a correct checksum.
func (r subscriptionReader) cursor(place []byte) string {
	r.t.Helper()
	b := assert.Must(base64.RawURLEncoding.DecodeString(r.get("/subscriptions/changes?limit=1").list(r.t).Next))(r.t)
	const fixed = 1 + 8 + 8 + 4 // version, system, timeline, database
	b = append(b[:fixed:fixed], place[:min(len(place), 40)]...)
	salted := binary.BigEndian.AppendUint64([]byte("changes cursor\x00"), uint64(r.shop.ID))
	sum := sha256.Sum256(append(salted, b...))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:8]...))
}
