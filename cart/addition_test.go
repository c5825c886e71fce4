package cart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/deploy/assert"
)

// membersOf returns the members that a refusal names; the message is about the first.
func membersOf(refusal *problem.Error) (members []string) {
	for _, f := range refusal.Faults {
		members = append(members, f.Member)
	}
	return members
}

func TestResolve_ANameAndItsPositionGiveTheSameLine(t *testing.T) {
	t.Parallel()
	var lines []NewLine
	for _, fields := range []map[string]string{
		{"email": "a@example.com", "region": "us"},
		{"0": "a@example.com", "1": "us"},
		{"email": "a@example.com", "1": "us"},
		{"email": "a@example.com", "0": "a@example.com", "region": "us"}, // the same answer twice
	} {
		l, err := Resolve(Addition{ProductID: 5, Quantity: 2, PlanID: new(int64(51)), Fields: fields}, account(), testLimits)
		assert.Require(t, err == nil, "%v: %v", fields, err)
		lines = append(lines, l)
	}
	want := NewLine{
		ID: lines[0].ID, Quantity: 2, Price: 1500 + 2000 + 525,
		Fields: []FieldValue{{"email", "a@example.com"}, {"region", "us"}},
		Bounds: Bounds{Stock: -1, Min: 1, Max: 999},
	}
	for i, l := range lines {
		assert.Equal(t, l, want, "addition %d", i)
	}
}

func TestResolve_EmptyTextIsNoAnswer(t *testing.T) {
	t.Parallel()
	plan := new(int64(51))
	with, err1 := Resolve(Addition{Quantity: 1, PlanID: plan, Fields: map[string]string{"email": "x", "region": ""}}, account(), testLimits)
	without, err2 := Resolve(Addition{Quantity: 1, PlanID: plan, Fields: map[string]string{"email": "x"}}, account(), testLimits)
	assert.That(t, err1 == nil && err2 == nil && with.ID == without.ID, "%s and %s: %v, %v", with.ID, without.ID, err1, err2)
}

func TestResolve_Refuses(t *testing.T) {
	t.Parallel()
	inactive, noPlans, retired := account(), account(), account()
	inactive.Active, noPlans.Plans = false, nil
	retired.Plans[0].Retired, retired.Plans[1].Retired = true, true
	named, asking := account(), account()
	named.Fields = append(named.Fields, Field{Name: "0"}) // a name before a position
	asking.Fields = append(asking.Fields, Field{Name: "age", Required: true}, Field{Name: "size", Options: []Option{{Code: "s"}}})
	plan, none, other := new(int64(51)), (*int64)(nil), new(int64(59))
	email, twoAnswers := map[string]string{"email": "x"}, map[string]string{"email": "x", "0": "y"}
	long := func(n int) map[string]string { return map[string]string{"email": strings.Repeat("x", n)} }
	for name, tc := range map[string]struct {
		product *Product
		plan    *int64
		fields  map[string]string
		notice  string
		code    problem.Code
		members []string
	}{
		"no such product":                    {nil, none, nil, "", problem.ProductNotFound, []string{"product_id"}},
		"inactive":                           {inactive, plan, email, "", problem.ProductInactive, []string{"product_id"}},
		"no plan where one is required":      {account(), none, email, "", problem.PlanUnavailable, []string{"subscription_plan"}},
		"an unknown plan":                    {account(), other, email, "", problem.PlanUnavailable, []string{"subscription_plan"}},
		"plan 0":                             {account(), new(int64(0)), email, "", problem.PlanUnavailable, []string{"subscription_plan"}},
		"a plan for a product without plans": {noPlans, plan, email, "", problem.PlanUnavailable, []string{"subscription_plan"}},
		"a retired plan":                     {retired, plan, email, "", problem.PlanUnavailable, []string{"subscription_plan"}},
		"no plan where all are retired":      {retired, none, email, "", problem.PlanUnavailable, []string{"subscription_plan"}},
		"a required field missing":           {account(), plan, map[string]string{"region": "us"}, "", problem.FieldMissing, []string{"fields.email"}},
		"a required field empty":             {account(), plan, map[string]string{"0": ""}, "", problem.FieldMissing, []string{"fields.email"}},
		"an unknown field":                   {account(), plan, map[string]string{"email": "x", "size": "1"}, "", problem.FieldInvalid, []string{"fields.size"}},
		"an unknown field, empty":            {account(), plan, map[string]string{"email": "x", "size": ""}, "", problem.FieldInvalid, []string{"fields.size"}},
		"a position past the last":           {account(), plan, map[string]string{"email": "x", "2": "1"}, "", problem.FieldInvalid, []string{"fields.2"}},
		"a position with a leading zero":     {account(), plan, map[string]string{"email": "x", "00": "x"}, "", problem.FieldInvalid, []string{"fields.00"}},
		"a negative position":                {account(), plan, map[string]string{"email": "x", "-1": "x"}, "", problem.FieldInvalid, []string{"fields.-1"}},
		"an unknown option":                  {account(), plan, map[string]string{"email": "x", "region": "fr"}, "", problem.FieldInvalid, []string{"fields.region"}},
		"an option's name":                   {account(), plan, map[string]string{"email": "x", "region": "Saudi Arabia"}, "", problem.FieldInvalid, []string{"fields.region"}},
		"one field, two answers":             {account(), plan, twoAnswers, "", problem.FieldInvalid, []string{"fields.email"}},
		"a name that is a number":            {named, plan, map[string]string{"0": "x"}, "", problem.FieldMissing, []string{"fields.email"}},
		"an answer too long":                 {account(), plan, long(4097), "", problem.ValidationFailed, []string{"fields"}},
		"too long with the notice":           {account(), plan, long(4096), "n", problem.ValidationFailed, []string{"fields"}},
		"exactly at the limit":               {account(), plan, long(4095), "n", "", nil},
		"the answers fit the limits":         {account(), plan, email, "", "", nil},

		"two missing":              {asking, plan, nil, "", problem.FieldMissing, []string{"fields.email", "fields.age"}},
		"missing, then invalid":    {asking, plan, map[string]string{"region": "fr", "2": "9"}, "", problem.FieldMissing, []string{"fields.email", "fields.region"}},
		"invalid, then missing":    {asking, plan, map[string]string{"email": "x", "1": "fr"}, "", problem.FieldInvalid, []string{"fields.1", "fields.age"}},
		"unknown keys come last":   {asking, plan, map[string]string{"email": "x", "00": "x", "Size": ""}, "", problem.FieldMissing, []string{"fields.age", "fields.00", "fields.Size"}},
		"the plan comes first":     {asking, none, map[string]string{"email": "x", "age": "9", "size": "m"}, "", problem.PlanUnavailable, []string{"subscription_plan", "fields.size"}},
		"and the text is too long": {asking, other, map[string]string{"age": "9"}, strings.Repeat("n", 4096), problem.PlanUnavailable, []string{"subscription_plan", "fields.email", "fields"}},
		"two answers, one missing": {asking, plan, twoAnswers, "", problem.FieldInvalid, []string{"fields.email", "fields.age"}},
	} {
		_, err := Resolve(Addition{Quantity: 1, PlanID: tc.plan, Fields: tc.fields, Notice: tc.notice}, tc.product, testLimits)
		if err == nil {
			assert.That(t, tc.code == "", "%s: accepted, want %s", name, tc.code)
			continue
		}
		diff := cmp.Diff(tc.members, membersOf(err))
		assert.That(t, diff == "" && err.Code == tc.code, "%s: %s, want %s, members (-want +got)\n%s", name, err.Code, tc.code, diff)
		text := err.Message(locale.En)
		assert.That(t, !strings.Contains(text, "%!"), "%s: wrong format arguments in %q", name, text)
	}
}

// A merchant's names of fields and codes of options need not be in normal form. A line stores the
// merchant's spelling, whichever one the shopper sent, so that it equals lines stored earlier.
func TestResolve_MatchesFieldsAndOptionsInNormalForm(t *testing.T) {
	t.Parallel()
	p := sold(1, 100)
	p.Fields = []Field{{Name: "Gro\u0308ße", Required: true, Options: []Option{{Code: "petite\u0301 ", Price: 5}, {Code: "gr\u00e4nd", Price: 7}}}}
	for sent, want := range map[string]string{
		"petité": "petite\u0301 ", "petite\u0301 ": "petite\u0301 ", "gränd": "gr\u00e4nd", "gra\u0308nd": "gr\u00e4nd",
	} {
		for _, key := range []string{"Größe", "Gro\u0308ße", "0"} {
			line, err := Resolve(Addition{Quantity: 1, Fields: map[string]string{key: sent}}, p, testLimits)
			assert.That(t, err == nil && len(line.Fields) == 1 && line.Fields[0] == FieldValue{p.Fields[0].Name, want} && line.Price != 100,
				"%+q: %+q gives %+q at %d, %v", key, sent, line.Fields, line.Price, err)
		}
	}
	_, err := Resolve(Addition{Quantity: 1, Malformed: Malformed{FieldKeys: map[string]bool{"Größe": true}}}, p, testLimits)
	assert.That(t, err == nil, "an answer that cannot be read is missing too: %v", err)
	_, err = Resolve(Addition{Quantity: 1, Fields: map[string]string{"Größe": "gränd", "Gro\u0308ße": "petité"}}, p, testLimits)
	assert.That(t, err != nil && err.Code == problem.FieldInvalid, "one field in two spellings: %v", err)
}

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
