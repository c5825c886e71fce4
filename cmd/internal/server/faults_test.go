package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fault is something wrong with an add or an edit of product 5, and the member that an error names.
type fault struct {
	member, part string // of the body
	inFields     bool   // part belongs to fields
	named        string
}

var faultsOfABody = []fault{
	{"qty", `"qty":0.5`, false, "qty"},
	{"qty", `"qty":5000`, false, "qty"},
	{"plan", `"subscription_plan":"x"`, false, "subscription_plan"},
	{"email", `"Account email":null`, true, "fields.Account email"},
	{"email", `"Account email":["x"]`, true, "fields.Account email"},
	{"region", `"Region":"nowhere"`, true, "fields.Region"},
	{"other", `"Color":"red"`, true, "fields.Color"},
	{"notice", `"notice":"` + strings.Repeat("x", 501) + `"`, false, "notice"},
}

// combinations calls each with every set of faults that has at most one for each part of the body.
func combinations(each func(body string, named []string)) {
	for set := range 1 << len(faultsOfABody) {
		members, fields, taken, named := []string{}, []string{}, map[string]bool{}, map[string]bool{}
		distinct := true
		for i, f := range faultsOfABody {
			if set&(1<<i) == 0 {
				continue
			}
			distinct = distinct && !taken[f.member]
			taken[f.member], named[f.named] = true, true
			if f.inFields {
				fields = append(fields, f.part)
			} else {
				members = append(members, f.part)
			}
		}
		if !distinct || set == 0 {
			continue
		}
		if !taken["email"] {
			fields = append(fields, `"Account email":"a@example.com"`)
		}
		members = append(members, `"product_id":5`, `"fields":{`+strings.Join(fields, ",")+`}`)
		each("{"+strings.Join(members, ",")+"}", slices.Sorted(maps.Keys(named)))
	}
}

// A form shows all its faults at once.
func TestErrors_NameEveryMemberAtFault(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.guest(t)
	line := c.add(`{"product_id":5,"fields":{"Account email":"b@example.com"}}`).Body.Data.Items[0].ID
	n := 0
	combinations(func(body string, named []string) {
		n++
		for _, call := range [][2]string{{"POST", "/cart/add"}, {"PATCH", "/cart/items/" + line}} {
			a := c.send(call[0], call[1], body)
			if diff := cmp.Diff(named, slices.Sorted(maps.Keys(a.Body.Errors))); a.Status != 422 || diff != "" {
				t.Errorf("%s %.200s: %d (-want +named)\n%s", call[0], body, a.Status, diff)
			}
		}
	})
	if n != 3*2*3*2*2*2-1 {
		t.Errorf("%d combinations", n)
	}
	c.wantLines(line + "×1")
	absent := c.refused(422, "validation_failed", "PATCH", "/cart/items/404", `{"quantity":-1,"notice":5}`)
	if diff := cmp.Diff([]string{"notice", "quantity"}, slices.Sorted(maps.Keys(absent.Body.Errors))); diff != "" {
		t.Errorf("of a line that is not there (-want +named)\n%s", diff)
	}
}

func TestErrors_NameAtMost50Members(t *testing.T) {
	t.Parallel()
	c := openShop(t, embeddedRedis(t)).guest(t)
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":"",`, i)
		}
		return `{"product_id":5,"fields":{` + b.String() + `"Account email":"a@example.com"}}`
	}
	if a := c.refused(422, "field_invalid", "POST", "/cart/add", keys(99)); len(a.Body.Errors) != 50 {
		t.Errorf("%d members are named", len(a.Body.Errors))
	}
	if a := c.refused(422, "validation_failed", "POST", "/cart/add", keys(100)); len(a.Body.Errors["fields"]) != 1 || len(a.Body.Errors) != 1 {
		t.Errorf("101 keys: %v", a.Body.Errors)
	}
}

// The largest requests that a parser accepts cost little, whatever they hold. The least of several
// runs counts, in CPU time.
func TestWorstInput_CostsLittle(t *testing.T) { // not in parallel: it measures the process
	const most = 64<<10 - 100
	many := func(format string, size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()[:b.Len()-1] // without the last comma
	}
	marks := strings.Repeat("\u0344", most/2)                             // decomposes into two
	jumbled := strings.Repeat("\u0323\u0301", most/4)                     // to be put in order
	nested := strings.Repeat(`{"a":`, 30) + "1" + strings.Repeat("}", 30) // as deep as is allowed
	bodies := map[string]string{
		"keys of fields":     `{"product_id":5,"fields":{` + many(`"%d":"",`, most) + `}}`,
		"100 keys of fields": `{"product_id":5,"fields":{` + many(`"%d":"`+strings.Repeat("x", 600)+`",`, most-1200) + `}}`,
		"members":            `{"product_id":5,` + many(`"%d":1,`, most) + `}`,
		"members of a plan":  `{"product_id":5,"subscription_plan":{` + many(`"%d":1,`, most) + `}}`,
		"nested members":     `{"product_id":5,` + many(`"%d":`+nested+`,`, most-200) + `}`,
		"a long number":      `{"product_id":` + strings.Repeat("9", most) + `}`,
		"a long fraction":    `{"product_id":1.` + strings.Repeat("0", most) + `}`,
		"an exponent":        `{"product_id":5,"qty":1e999999999}`,
		"a notice":           `{"product_id":5,"notice":"` + marks + `"}`,
		"a notice to sort":   `{"product_id":5,"notice":"x` + jumbled + `"}`,
		"escapes":            `{"product_id":5,"notice":"` + strings.Repeat(`\u0301`, most/6) + `"}`,
		"an answer":          `{"product_id":5,"fields":{"Account email":"` + marks + `"}}`,
		"a name":             `{"product_id":5,"fields":{"` + marks + `":"x"}}`,
		"a coupon":           `{"coupon":"` + marks + `"}`,
		"a coupon to sort":   `{"coupon":"x` + jumbled + `","code":"y"}`,
		"brackets":           strings.Repeat("[", most),
		"a repeated member":  `{` + strings.Repeat(`"a":1,`, most/6) + `"a":1}`,
	}
	s := openShop(t, embeddedRedis(t))
	line := s.guest(t).add(`{"product_id":5,"fields":{"Account email":"b@example.com"}}`).Body.Data.Items[0].ID
	for name, body := range bodies {
		for _, call := range [][2]string{{"POST", "/cart/add"}, {"PATCH", "/cart/items/" + line}, {"POST", "/cart/coupon"}} {
			s.wantCheap(t, name, func() *http.Request {
				r := httptest.NewRequest(call[0], call[1], strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				return r
			})
		}
	}
	for name, value := range map[string]string{
		"If-None-Match": many(`"%d",`, most), "If-Match": many(`"%d",`, most), "Accept-Language": many("a%d;q=0.1,", most),
		"X-Cart-Token": strings.Repeat("a", most), "Idempotency-Key": strings.Repeat("a", most), "Accept": many("a/b%d;q=0.1,", most),
		"Authorization": "Bearer " + strings.Repeat("a.", most/2), "X-Timestamp": strings.Repeat("1", most), "X-Forwarded-For": many("10.0.0.%d,", most),
		"Content-Type": "application/json; " + many("a%d=b;", most), "X-Public-Key": strings.Repeat("a", most), "X-Request-Id": strings.Repeat("a", most),
		"Accept-Encoding": many("a%d;q=0.1,", most), "Origin": "https://" + strings.Repeat("a", most), "Cookie": many("a%d=b;", most),
	} {
		for _, call := range [][2]string{{"GET", "/cart"}, {"POST", "/cart/add"}, {"DELETE", "/cart/clear"}, {"GET", "/subscriptions"}, {"GET", "/subscriptions/changes"}} {
			s.wantCheap(t, "the header "+name, func() *http.Request {
				r := httptest.NewRequest(call[0], call[1], strings.NewReader(`{"product_id":1}`))
				if strings.HasPrefix(call[1], "/subscriptions") {
					r.Header.Set("Authorization", "Bearer "+s.API)
				}
				r.Header.Set(name, value)
				return r
			})
		}
	}
	for name, query := range map[string]string{
		"names": many("a%d=1&", most), "one name": strings.Repeat("page=1&", most/7), "an email": "customerEmail=" + strings.Repeat("%CD%84", most/6) + "@x.com",
		"a phone": "customerPhone=" + strings.Repeat("%D9%A1", most/6), "states": "status=" + strings.Repeat("active,", most/7),
		"a cursor": "after=" + strings.Repeat("a", most), "a page": "page=" + strings.Repeat("9", most), "separators": strings.Repeat("&;", most/2),
	} {
		for _, path := range []string{"/subscriptions", "/subscriptions/changes", "/subscriptions/summary"} {
			s.wantCheap(t, "a query of "+name, func() *http.Request {
				r := httptest.NewRequest("GET", path+"?"+query, nil)
				r.Header.Set("Authorization", "Bearer "+s.API)
				return r
			})
		}
	}
}

// wantCheap fails if a request takes more than 5 ms of CPU, or allocates more than 5 MB.
func (s *shop) wantCheap(t *testing.T, what string, request func() *http.Request) {
	t.Helper()
	const mostTime, mostMemory = 5 * time.Millisecond, 5 << 20
	leastTime, leastMemory := time.Hour, uint64(1<<60)
	for range 20 {
		r, w := request(), httptest.NewRecorder()
		r.Header.Set("X-Public-Key", s.Key)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpuTime(t)
		s.handler.ServeHTTP(w, r)
		leastTime = min(leastTime, cpuTime(t)-began)
		runtime.ReadMemStats(&after)
		leastMemory = min(leastMemory, after.TotalAlloc-before.TotalAlloc)
		if leastTime <= mostTime && leastMemory <= mostMemory {
			return
		}
		if w.Code >= 500 {
			break
		}
	}
	r := request()
	t.Errorf("%s %.40s with %s: %v of CPU, %d bytes", r.Method, r.URL.Path, what, leastTime, leastMemory)
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
