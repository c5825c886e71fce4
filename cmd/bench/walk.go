package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// walk reads all rows of a store by links from page to page.
type walk struct {
	first     string // URL of page 1
	perPage   int
	distance  time.Duration // how long to wait before each request, as for a network
	client    *client
	transport *http.Transport
}

const (
	usualPage, longPage = 15, 100 // rows, by default and at most

	// distance is a round trip to a service in the same region.
	distance = 10 * time.Millisecond
)

func newWalk(b *listBench, perPage int, distance time.Duration) (*walk, error) {
	w := &walk{
		first:   fmt.Sprintf("%s?per_page=%d", b.url(), perPage),
		perPage: perPage, distance: distance, transport: newTransport(1),
	}
	r, err := newRequest(http.MethodGet, w.first, b.header())
	w.client = &client{request: r}
	w.client.setAddresses(0)
	return w, err
}

func (w *walk) pause() {}

func (w *walk) close() { w.transport.CloseIdleConnections() }

// read reads pages until a time, at least one. The next call goes on after them; after the
// last page it goes on with page 1.
func (w *walk) read(ctx context.Context, until time.Time) (rows int, err error) {
	for rows == 0 || time.Now().Before(until) {
		n, err := w.page(ctx)
		if err != nil {
			return rows, err
		}
		rows += n
	}
	return rows, nil
}

// page reads one page. Only full ones count, which are all but the last one.
func (w *walk) page(ctx context.Context) (rows int, err error) {
	if err := w.client.next(ctx); err != nil {
		return 0, err
	}
	time.Sleep(w.distance)
	response, err := w.transport.RoundTrip(w.client.request.WithContext(ctx))
	if err != nil {
		return 0, err
	}
	link, err := linkOf(response)
	if err != nil {
		return 0, err
	}
	rows = w.perPage
	if link == "" {
		link, rows = w.first, 0
	}
	w.client.request.URL, err = url.Parse(link)
	return rows, err
}

// nextPage requests a page and returns its link to the next page.
func nextPage(ctx context.Context, rawURL string, header http.Header) (string, error) {
	made, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return "", err
	}
	made.Header = header
	response, err := http.DefaultClient.Do(made)
	if err != nil {
		return "", err
	}
	link, err := linkOf(response)
	if err == nil && link == "" {
		err = fmt.Errorf("no link to a next page at %s", rawURL)
	}
	return link, err
}

// linkOf reads a page, and returns its link to the next page, "" if it is the last one. It
// does not decode the rows: that could take as long as the service takes for them.
func linkOf(response *http.Response) (link string, err error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	const member = `"next_page_url":`
	at := bytes.LastIndex(body, []byte(member)) // rows come before it
	if response.StatusCode != http.StatusOK || at < 0 {
		return "", fmt.Errorf("not a page of subscriptions: %s", response.Status)
	}
	err = json.NewDecoder(bytes.NewReader(body[at+len(member):])).Decode(&link)
	return link, err
}
