package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// exporting returns a service with a store of so many rows. Each of its responses is the
// next of bodies, and asked collects the cursors that it got.
func exporting(t *testing.T, rows int, bodies ...string) (b *listBench, asked *[]string) {
	t.Helper()
	asked = new([]string)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.FormValue("after"))
		fmt.Fprint(w, bodies[(len(*asked)-1)%len(bodies)])
	}))
	t.Cleanup(target.Close)
	return &listBench{service: &server{process: &process{url: target.URL}}, rows: rows}, asked
}

func TestExport_CountsRowsUpToTheLastCursor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format format
		body   string
	}{
		{ndjson, `{"subscription":{"id":1}}` + "\n" + `{"deleted":{"id":3}}` + "\n" + `{"subscription":{"id":2}}` + "\n" + `{"next":"c"}` + "\n"},
		{csv, "kind,cursor,id\r\nrow,,1\r\ndeleted,,3\r\nrow,,2\r\nnext,c,\r\n"},
	} {
		b, _ := exporting(t, 2, c.body)
		e := newExport(b, c.format)
		defer e.close()
		if n, err := e.all(t.Context()); n != 2 || err != nil || e.head != "c" {
			t.Errorf("%s: %d rows up to %q, %v; want 2 up to c", c.format.name, n, e.head, err)
		}
	}
}

func TestExport_RefusesAnIncompleteOne(t *testing.T) {
	t.Parallel()
	row, next := `{"subscription":{"id":1}}`+"\n", `{"next":"c"}`+"\n"
	for name, body := range map[string]string{
		"without its last cursor": row + next + row,
		"cut inside of a line":    row + next + row[:9],
		"without a row":           row + next,
	} {
		b, _ := exporting(t, 2, body)
		e := newExport(b, ndjson)
		defer e.close()
		if n, err := e.all(t.Context()); err == nil {
			t.Errorf("a stream %s: %d rows and no error", name, n)
		}
	}
}

func TestExport_GoesOnAfterItsCursorAndBeginsAgainAtTheEnd(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat(`{"subscription":{"id":1}}`+"\n"+`{"next":"c"}`+"\n", 3)
	b, asked := exporting(t, 3, lines)
	e := newExport(b, ndjson)
	defer e.close()
	for _, pause := range []bool{false, true, false, false} {
		if n, err := e.read(t.Context(), time.Time{}); n != 1 || err != nil {
			t.Fatalf("%d rows, %v; want one row, up to the first cursor", n, err)
		}
		if pause {
			e.pause()
		}
	}
	if _, err := e.read(t.Context(), time.Now().Add(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "c", ""}, (*asked)[:3]); diff != "" {
		t.Errorf("cursors (-want +got):\n%s", diff)
	}
}

func TestWalk_FollowsLinksAndBeginsAgainAtTheEnd(t *testing.T) {
	t.Parallel()
	var asked []string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		link := "null"
		if r.FormValue("cursor") == "" {
			link = fmt.Sprintf(`"http://%s/subscriptions?per_page=100\u0026cursor=c"`, r.Host)
		}
		fmt.Fprintf(w, `{"data":{"data":[{"metadata":{"next_page_url":1}}],"next_page_url":%s,"path":"p"}}`, link)
	}))
	t.Cleanup(target.Close)
	w, err := newWalk(&listBench{service: &server{process: &process{url: target.URL}}}, longPage, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for range 2 {
		if n, err := w.read(t.Context(), time.Time{}); n != longPage || err != nil {
			t.Fatalf("%d rows, %v; want one page", n, err)
		}
	}
	if diff := cmp.Diff([]string{"per_page=100", "per_page=100&cursor=c", "per_page=100"}, asked); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
