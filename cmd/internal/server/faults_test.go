package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fault is something wrong with an add or an edit of product 5, and the member that an error names.
type fault struct {
	member, part string // of the body
	inFields     bool   // part belongs to fields
	named        string
	code         string // if nothing that is judged before is at fault
}

var faultsOfABody = []fault{
	{"qty", `"qty":0.5`, false, "qty", "validation_failed"},
	{"qty", `"qty":5000`, false, "qty", "quantity_out_of_range"},
	{"plan", `"subscription_plan":"x"`, false, "subscription_plan", "validation_failed"},
	{"email", `"Account email":null`, true, "fields.Account email", "field_missing"},
	{"email", `"Account email":["x"]`, true, "fields.Account email", "validation_failed"},
	{"region", `"Region":"nowhere"`, true, "fields.Region", "field_invalid"},
	{"other", `"Color":"red"`, true, "fields.Color", "field_invalid"},
	{"notice", `"notice":"` + strings.Repeat("x", 501) + `"`, false, "notice", "validation_failed"},
}

// combinations calls each with every set of faults that has at most one for each part of the body.
func combinations(each func(body string, named []string, code string)) {
	for set := range 1 << len(faultsOfABody) {
		members, fields, taken, named := []string{}, []string{}, map[string]bool{}, map[string]bool{}
		distinct, codes := true, map[string]bool{}
		for i, f := range faultsOfABody {
			if set&(1<<i) == 0 {
				continue
			}
			distinct = distinct && !taken[f.member]
			taken[f.member], named[f.named], codes[f.code] = true, true, true
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
		order := []string{"validation_failed", "field_missing", "field_invalid", "quantity_out_of_range"}
		first := slices.IndexFunc(order, func(code string) bool { return codes[code] })
		each("{"+strings.Join(members, ",")+"}", slices.Sorted(maps.Keys(named)), order[first])
	}
}

// A form shows all its faults at once.
func TestErrors_NameEveryMemberAtFault(t *testing.T) {
	s := newShop(t)
	c := s.guest(t)
	line := c.add(`{"product_id":5,"fields":{"Account email":"b@example.com"}}`).Body.Data.Items[0].ID
	n := 0
	combinations(func(body string, named []string, code string) {
		n++
		for _, call := range [][2]string{{"POST", "/cart/add"}, {"PATCH", "/cart/items/" + line}} {
			a := c.send(call[0], call[1], body)
			diff := cmp.Diff(named, slices.Sorted(maps.Keys(a.Body.Errors)))
			assert(t, a.Status == 422 && a.Body.Code == code && diff == "", "%s %.200s: %d %s, want %s (-want +named)\n%s", call[0], body, a.Status, a.Body.Code, code, diff)
		}
	})
	assert(t, n == 3*2*3*2*2*2-1, "%d combinations", n)
	c.wantLines(line + "×1")
	absent := c.refused(422, "validation_failed", "PATCH", "/cart/items/404", `{"quantity":-1,"notice":5}`)
	equal(t, slices.Sorted(maps.Keys(absent.Body.Errors)), []string{"notice", "quantity"}, "members at fault, for a line that does not exist")
}

func TestErrors_NameAtMost50Members(t *testing.T) {
	c := newShop(t).guest(t)
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":"",`, i)
		}
		return `{"product_id":5,"fields":{` + b.String() + `"Account email":"a@example.com"}}`
	}
	equal(t, len(c.refused(422, "field_invalid", "POST", "/cart/add", keys(99)).Body.Errors), 50, "number of members that are named")
	if a := c.refused(422, "validation_failed", "POST", "/cart/add", keys(100)); len(a.Body.Errors["fields"]) != 1 || len(a.Body.Errors) != 1 {
		t.Errorf("101 keys: %v", a.Body.Errors)
	}
}
