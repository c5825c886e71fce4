package cart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

// The account has the required field email, the select region, and the plans 51 and 52.
func accountLine(plan int64, fields ...FieldValue) Line {
	return Line{ID: NewLineID(5, plan, fields), Quantity: 2, AddedPrice: 1, Fields: fields, Notice: "n"}
}

func TestEditResolve(t *testing.T) {
	t.Parallel()
	inactive, retired := account(), account()
	inactive.Active, retired.Plans[0].Retired = false, true
	email, other := FieldValue{"email", "x"}, FieldValue{"email", "y"}
	us, stale := FieldValue{"region", "us"}, FieldValue{"nickname", "z"}
	for name, test := range map[string]struct {
		line    Line
		product *Product
		edit    Edit
		want    Line         // as it becomes; its quantity and price do not count
		code    problem.Code // "" when it is accepted
		members []string
	}{
		"a typo":                           {accountLine(51, email, us), account(), Edit{Fields: map[string]string{"email": "y"}}, accountLine(51, other, us), "", nil},
		"by position":                      {accountLine(51, email), account(), Edit{Fields: map[string]string{"0": "y", "1": "us"}}, accountLine(51, other, us), "", nil},
		"a field cleared":                  {accountLine(51, email, us), account(), Edit{Fields: map[string]string{"region": ""}}, accountLine(51, email), "", nil},
		"another plan":                     {accountLine(51, email), account(), Edit{PlanID: new(int64(52))}, accountLine(52, email), "", nil},
		"everything":                       {accountLine(51, email), account(), Edit{PlanID: new(int64(52)), Fields: map[string]string{"region": "us"}, Notice: new("n")}, accountLine(52, email, us), "", nil},
		"nothing new":                      {accountLine(51, email), inactive, Edit{PlanID: new(int64(51)), Fields: map[string]string{"email": "x", "region": ""}}, accountLine(51, email), "", nil},
		"an answer of an earlier catalog":  {accountLine(51, email, stale), account(), Edit{Fields: map[string]string{"nickname": "", "email": "y"}}, accountLine(51, other), "", nil},
		"that answer again":                {accountLine(51, email, stale), account(), Edit{Fields: map[string]string{"nickname": "z"}}, accountLine(51, email, stale), "", nil},
		"a required field cleared":         {accountLine(51, email), account(), Edit{Fields: map[string]string{"email": ""}}, Line{}, problem.FieldMissing, []string{"fields.email"}},
		"a key that is no field":           {accountLine(51, email), account(), Edit{Fields: map[string]string{"emial": ""}}, Line{}, problem.FieldInvalid, []string{"fields.emial"}},
		"cleared and given":                {accountLine(51, email, us), account(), Edit{Fields: map[string]string{"email": "", "0": "y"}}, Line{}, problem.FieldInvalid, []string{"fields.email"}},
		"no such option":                   {accountLine(51, email), account(), Edit{Fields: map[string]string{"region": "fr"}}, Line{}, problem.FieldInvalid, []string{"fields.region"}},
		"every fault":                      {accountLine(51, email), account(), Edit{PlanID: new(int64(59)), Fields: map[string]string{"email": "", "9": "q"}}, Line{}, problem.PlanUnavailable, []string{"fields.9", "fields.email", "subscription_plan"}},
		"plan 0":                           {Line{ID: "1", Quantity: 1}, sold(1, 100), Edit{PlanID: new(int64(0))}, Line{}, problem.PlanUnavailable, []string{"subscription_plan"}},
		"the retired plan that it has":     {accountLine(51, email), retired, Edit{PlanID: new(int64(51)), Notice: new("n")}, accountLine(51, email), "", nil},
		"to a retired plan":                {accountLine(52, email), retired, Edit{PlanID: new(int64(51))}, Line{}, problem.PlanUnavailable, []string{"subscription_plan"}},
		"fields of a product not sold":     {accountLine(51, email), inactive, Edit{Fields: map[string]string{"email": "y"}}, Line{}, problem.ProductInactive, []string{"fields"}},
		"plan of a product that is gone":   {accountLine(51, email), nil, Edit{PlanID: new(int64(52)), Fields: map[string]string{"email": "y"}}, Line{}, problem.ProductNotFound, []string{"fields", "subscription_plan"}},
		"a notice, the product is gone":    {accountLine(51, email), nil, Edit{Notice: new("n")}, accountLine(51, email), "", nil},
		"the plan, while a field is stale": {accountLine(51, email, stale), account(), Edit{PlanID: new(int64(52))}, accountLine(52, email, stale), "", nil},
		"too much text":                    {accountLine(51, email), account(), Edit{Notice: new(strings.Repeat("n", 5000))}, Line{}, problem.ValidationFailed, []string{"notice"}},
		"too much text in a field":         {accountLine(51, email), account(), Edit{Fields: map[string]string{"email": strings.Repeat("n", 5000)}}, Line{}, problem.ValidationFailed, []string{"fields"}},
	} {
		got, refusal := test.edit.Resolve(test.line, test.product, testLimits)
		if refusal != nil {
			members := slices.Sorted(slices.Values(membersOf(refusal)))
			assert.That(t, refusal.Code == test.code && slices.Equal(members, test.members),
				"%s: %s, %q, want %s, %q", name, refusal.Code, members, test.code, test.members)
			continue
		}
		became := Line{ID: got.ID, Fields: got.Fields, Notice: got.Notice}
		want := Line{ID: test.want.ID, Fields: test.want.Fields, Notice: test.want.Notice}
		diff := cmp.Diff(want, became)
		assert.That(t, diff == "" && test.code == "", "%s: accepted, want %q (-want +got)\n%s", name, test.code, diff)
	}
}

// A line that an operator's lower limit would refuse can still be shortened.
func TestEditResolve_TextMayShrinkAboveTheLimit(t *testing.T) {
	t.Parallel()
	long := Line{ID: "1", Quantity: 1, Notice: strings.Repeat("n", 300)}
	_, refusal := (Edit{Notice: new(strings.Repeat("n", 200))}).Resolve(long, sold(1, 100), Limits{LineText: 100})
	assert.That(t, refusal == nil, "%v", refusal)
}
