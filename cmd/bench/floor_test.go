package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// floorBody sends a request to a floor and returns the body.
func floorBody(t *testing.T, method, rawURL string, body []byte) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, rawURL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Cart-Token", "test")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v: %s", method, rawURL, response.Status, err, answer)
	}
	return answer
}

func TestFloorAdd_AnswersTheSameCartAsFloorGet(t *testing.T) {
	t.Parallel()
	s, err := newStage(options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	floors, err := openFloors(t.Context(), s, []string{"floor-get", "floor-add", "floor-add" + withDefaultGC})
	if err != nil {
		t.Fatal(err)
	}
	get, add := floors[0].server.url+"/cart", floors[1].server.url+"/cart/add"
	var added []byte
	for i := range fewLines + 1 {
		added = floorBody(t, http.MethodPost, add, addition(i%fewLines))
	}
	if read := floorBody(t, http.MethodGet, get, nil); len(read) != len(added) {
		t.Errorf("floor-get answers %d bytes, floor-add %d:\n%s\n%s", len(read), len(added), read, added)
	}
	var cart struct{ Data []floorLine }
	if err := json.Unmarshal(added, &cart); err != nil {
		t.Fatal(err)
	}
	quantities := map[int64]int64{}
	for _, line := range cart.Data {
		quantities[line.ProductID] = line.Quantity
	}
	if len(quantities) != fewLines || quantities[firstProduct] != 2 || quantities[firstProduct+1] != 1 {
		t.Errorf("quantities after an add of each product and a second one of the first: %v", quantities)
	}
}
