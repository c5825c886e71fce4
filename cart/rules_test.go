package cart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
)

// wantRefusal compares a refusal's code and the member it names; "" for none.
func wantRefusal(t *testing.T, name string, err *Error, code Code, member string) {
	t.Helper()
	if err == nil {
		if code != "" {
			t.Errorf("%s: taken, want %s", name, code)
		}
		return
	}
	if err.code != code || err.faults[0].member != member {
		t.Errorf("%s: %s of %q, want %s of %q", name, err.code, err.faults[0].member, code, member)
	}
	if text := err.Message(locale.En); strings.Contains(text, "%!") {
		t.Errorf("%s: says %q", name, text)
	}
}

func TestResolve_ANameAndItsPositionGiveTheSameLine(t *testing.T) {
	t.Parallel()
	var lines []newLine
	for _, fields := range []map[string]string{
		{"email": "a@example.com", "region": "us"},
		{"0": "a@example.com", "1": "us"},
		{"email": "a@example.com", "1": "us"},
		{"email": "a@example.com", "0": "a@example.com", "region": "us"}, // twice the same is once
	} {
		l, err := resolve(Addition{ProductID: 5, Quantity: 2, PlanID: ptr(int64(51)), Fields: fields}, account(), testLimits)
		if err != nil {
			t.Fatalf("%v: %v", fields, err)
		}
		lines = append(lines, l)
	}
	want := newLine{
		id: lines[0].id, quantity: 2, price: 1500 + 2000 + 525,
		fields: []FieldValue{{"email", "a@example.com"}, {"region", "us"}},
		bounds: bounds{stock: -1, least: 1, most: 999},
	}
	for i, l := range lines {
		if diff := cmp.Diff(want, l, cmp.AllowUnexported(newLine{}, bounds{})); diff != "" {
			t.Errorf("addition %d (-want +got)\n%s", i, diff)
		}
	}
}

func TestResolve_EmptyTextIsNoAnswer(t *testing.T) {
	t.Parallel()
	plan := ptr(int64(51))
	with, err1 := resolve(Addition{Quantity: 1, PlanID: plan, Fields: map[string]string{"email": "x", "region": ""}}, account(), testLimits)
	without, err2 := resolve(Addition{Quantity: 1, PlanID: plan, Fields: map[string]string{"email": "x"}}, account(), testLimits)
	if err1 != nil || err2 != nil || with.id != without.id {
		t.Errorf("%s and %s: %v, %v", with.id, without.id, err1, err2)
	}
}

func TestResolve_Refuses(t *testing.T) {
	t.Parallel()
	inactive, noPlans := account(), account()
	inactive.Active, noPlans.Plans = false, nil
	named := account()
	named.Fields = append(named.Fields, Field{Name: "0"}) // a name before a position
	plan, none, other := ptr(int64(51)), (*int64)(nil), ptr(int64(59))
	email := map[string]string{"email": "x"}
	for name, tc := range map[string]struct {
		product *Product
		plan    *int64
		fields  map[string]string
		notice  string
		code    Code
		member  string
	}{
		"no such product":           {nil, none, nil, "", CodeProductNotFound, "product_id"},
		"inactive":                  {inactive, plan, email, "", CodeProductInactive, "product_id"},
		"no plan where one must be": {account(), none, email, "", CodePlanUnavailable, "subscription_plan"},
		"an unknown plan":           {account(), other, email, "", CodePlanUnavailable, "subscription_plan"},
		"plan 0":                    {account(), ptr(int64(0)), email, "", CodePlanUnavailable, "subscription_plan"},
		"a plan where there is none": {
			noPlans, plan, email, "", CodePlanUnavailable, "subscription_plan",
		},
		"a required field missing":   {account(), plan, map[string]string{"region": "us"}, "", CodeFieldMissing, "fields.email"},
		"a required field empty":     {account(), plan, map[string]string{"0": ""}, "", CodeFieldMissing, "fields.email"},
		"an unknown field":           {account(), plan, map[string]string{"email": "x", "size": "1"}, "", CodeFieldInvalid, "fields.size"},
		"an unknown field, empty":    {account(), plan, map[string]string{"email": "x", "size": ""}, "", CodeFieldInvalid, "fields.size"},
		"a position past the last":   {account(), plan, map[string]string{"email": "x", "2": "1"}, "", CodeFieldInvalid, "fields.2"},
		"a position written oddly":   {account(), plan, map[string]string{"email": "x", "00": "x"}, "", CodeFieldInvalid, "fields.00"},
		"a negative position":        {account(), plan, map[string]string{"email": "x", "-1": "x"}, "", CodeFieldInvalid, "fields.-1"},
		"an unknown option":          {account(), plan, map[string]string{"email": "x", "region": "fr"}, "", CodeFieldInvalid, "fields.region"},
		"an option's name":           {account(), plan, map[string]string{"email": "x", "region": "Saudi Arabia"}, "", CodeFieldInvalid, "fields.region"},
		"one field, two answers":     {account(), plan, map[string]string{"email": "x", "0": "y"}, "", CodeFieldInvalid, "fields.email"},
		"a name that is a number":    {named, plan, map[string]string{"0": "x"}, "", CodeFieldMissing, "fields.email"},
		"too long an answer":         {account(), plan, map[string]string{"email": strings.Repeat("x", 4097)}, "", CodeValidationFailed, "fields"},
		"too long with the notice":   {account(), plan, map[string]string{"email": strings.Repeat("x", 4096)}, "n", CodeValidationFailed, "fields"},
		"as long as it may be":       {account(), plan, map[string]string{"email": strings.Repeat("x", 4095)}, "n", "", ""},
		"the answers fit the limits": {account(), plan, email, "", "", ""},
	} {
		_, err := resolve(Addition{Quantity: 1, PlanID: tc.plan, Fields: tc.fields, Notice: tc.notice}, tc.product, testLimits)
		wantRefusal(t, name, err, tc.code, tc.member)
	}
}

func TestResolve_NamesEveryMemberAtFault(t *testing.T) {
	t.Parallel()
	asking := account()
	asking.Fields = append(asking.Fields, Field{Name: "age", Required: true}, Field{Name: "size", Options: []Option{{Code: "s"}}})
	for name, tc := range map[string]struct {
		plan    *int64
		fields  map[string]string
		notice  string
		code    Code
		members []string // the first one has the message
	}{
		"two missing":             {ptr(int64(51)), nil, "", CodeFieldMissing, []string{"fields.email", "fields.age"}},
		"missing, then invalid":   {ptr(int64(51)), map[string]string{"region": "fr", "2": "9"}, "", CodeFieldMissing, []string{"fields.email", "fields.region"}},
		"invalid, then missing":   {ptr(int64(51)), map[string]string{"email": "x", "1": "fr"}, "", CodeFieldInvalid, []string{"fields.1", "fields.age"}},
		"no field comes last":     {ptr(int64(51)), map[string]string{"email": "x", "00": "x", "Size": ""}, "", CodeFieldMissing, []string{"fields.age", "fields.00", "fields.Size"}},
		"the plan comes first":    {nil, map[string]string{"email": "x", "age": "9", "size": "m"}, "", CodePlanUnavailable, []string{"subscription_plan", "fields.size"}},
		"and too long a text too": {ptr(int64(59)), map[string]string{"age": "9"}, strings.Repeat("n", 4096), CodePlanUnavailable, []string{"subscription_plan", "fields.email", "fields"}},
		"one field, two answers":  {ptr(int64(51)), map[string]string{"email": "x", "0": "y"}, "", CodeFieldInvalid, []string{"fields.email", "fields.age"}},
	} {
		_, err := resolve(Addition{Quantity: 1, PlanID: tc.plan, Fields: tc.fields, Notice: tc.notice}, asking, testLimits)
		wantRefusal(t, name, err, tc.code, tc.members[0])
		var members []string
		for _, f := range err.faults {
			members = append(members, f.member)
		}
		if diff := cmp.Diff(tc.members, members); diff != "" {
			t.Errorf("%s names (-want +got)\n%s", name, diff)
		}
	}
}

// A merchant's codes are as they are; a line keeps them so, whatever the shopper
// sent, as lines of earlier versions do.
func TestResolve_MatchesAnOptionInNormalForm(t *testing.T) {
	t.Parallel()
	p := sold(1, 100)
	p.Fields = []Field{{Name: "size", Options: []Option{{Code: "petite\u0301 ", Price: 5}, {Code: "gr\u00e4nd", Price: 7}}}}
	for sent, want := range map[string]FieldValue{
		"petité": {"size", "petite\u0301 "}, "petite\u0301 ": {"size", "petite\u0301 "},
		"gränd": {"size", "gr\u00e4nd"}, "gra\u0308nd": {"size", "gr\u00e4nd"},
	} {
		line, err := resolve(Addition{Quantity: 1, Fields: map[string]string{"size": sent}}, p, testLimits)
		if err != nil || len(line.fields) != 1 || line.fields[0] != want || line.price == 100 {
			t.Errorf("%+q gives %+q at %d, %v", sent, line.fields, line.price, err)
		}
	}
}

func TestBoundsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		product *Product
		want    bounds
	}{
		"gone":                 {nil, bounds{-1, 1, 999}},
		"no bounds of its own": {&Product{MinQuantity: 1}, bounds{-1, 1, 999}},
		"no minimum given":     {&Product{}, bounds{-1, 1, 999}},
		"its own":              {&Product{Stock: ptr(int64(3)), MinQuantity: 2, MaxQuantity: ptr(int64(5))}, bounds{3, 2, 5}},
		"max past the service": {&Product{MinQuantity: 1, MaxQuantity: ptr(int64(5000))}, bounds{-1, 1, 999}},
		"sold out":             {&Product{Stock: new(int64)}, bounds{0, 1, 999}},
		"oversold":             {&Product{Stock: ptr(int64(-4))}, bounds{0, 1, 999}},
	} {
		if got := boundsOf(tc.product, testLimits); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestIssueOf(t *testing.T) {
	t.Parallel()
	sells := func(edit func(*Product)) *Product {
		p := sold(1, 100)
		edit(p)
		return p
	}
	stocked := func(n int64) *Product { return sells(func(p *Product) { p.Stock = &n }) }
	email := []FieldValue{{"email", "x"}}
	two, zero := int64(2), int64(0)
	for name, tc := range map[string]struct {
		line    Line
		product *Product
		left    *int64
		want    Code
	}{
		"nothing wrong":                {Line{ID: "1", Quantity: 1}, sold(1, 100), nil, ""},
		"gone":                         {Line{ID: "1", Quantity: 1}, nil, nil, CodeProductNotFound},
		"inactive":                     {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.Active = false }), nil, CodeProductInactive},
		"inactive before out of stock": {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.Active, p.Stock = false, &zero }), &zero, CodeProductInactive},
		"plan gone":                    {Line{ID: "5.p59", Quantity: 1, Fields: email}, account(), nil, CodePlanUnavailable},
		"plan needed by now":           {Line{ID: "5", Quantity: 1, Fields: email}, account(), nil, CodePlanUnavailable},
		"plan no longer sold":          {Line{ID: "1.p9", Quantity: 1}, sold(1, 100), nil, CodePlanUnavailable},
		"field gone":                   {Line{ID: "1", Quantity: 1, Fields: email}, sold(1, 100), nil, CodeFieldInvalid},
		"option gone":                  {Line{ID: "5.p51", Quantity: 1, Fields: []FieldValue{{"email", "x"}, {"region", "fr"}}}, account(), nil, CodeFieldInvalid},
		"field needed by now":          {Line{ID: "5.p51", Quantity: 1, Fields: []FieldValue{{"region", "us"}}}, account(), nil, CodeFieldMissing},
		"field answered invisibly":     {Line{ID: "5.p51", Quantity: 1, Fields: []FieldValue{{"email", "\u200b"}}}, account(), nil, CodeFieldMissing},
		"fields and plan right":        {Line{ID: "5.p51", Quantity: 1, Fields: email}, account(), nil, ""},
		"sold out":                     {Line{ID: "1", Quantity: 1}, stocked(0), &zero, CodeOutOfStock},
		"too few left":                 {Line{ID: "1", Quantity: 3}, stocked(2), &two, CodeInsufficientStock},
		"none left by lines before":    {Line{ID: "1", Quantity: 1}, stocked(2), &zero, CodeInsufficientStock},
		"just enough":                  {Line{ID: "1", Quantity: 2}, stocked(2), &two, ""},
		"below its minimum":            {Line{ID: "1", Quantity: 1}, sells(func(p *Product) { p.MinQuantity = 2 }), nil, CodeBelowMinQuantity},
		"above its maximum":            {Line{ID: "1", Quantity: 3}, sells(func(p *Product) { p.MaxQuantity = &two }), nil, CodeAboveMaxQuantity},
		"above the service's":          {Line{ID: "1", Quantity: 1000}, sold(1, 100), nil, CodeAboveMaxQuantity},
	} {
		got := issueOf(&tc.line, tc.product, tc.left, testLimits)
		if got == nil {
			if tc.want != "" {
				t.Errorf("%s: no issue, want %s", name, tc.want)
			}
			continue
		}
		if got.Code != tc.want || got.Requested != tc.line.Quantity || strings.Contains(got.fault.text(locale.En), "%!") {
			t.Errorf("%s: %+v %q, want %s", name, got, got.fault.text(locale.En), tc.want)
		}
		aboutStock := tc.want == CodeOutOfStock || tc.want == CodeInsufficientStock
		if (got.Available != nil) != aboutStock {
			t.Errorf("%s: available %v", name, got.Available)
		}
	}
}

func TestWarningsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		added money.Amount
		stock *int64
		want  []Code
	}{
		"nothing to say":     {100, nil, nil},
		"dearer":             {90, nil, []Code{CodePriceChanged}},
		"cheaper":            {110, nil, []Code{CodePriceChanged}},
		"plenty left":        {100, ptr(int64(6)), nil},
		"few left":           {100, ptr(int64(5)), []Code{CodeLowStock}},
		"dearer and few":     {90, ptr(int64(1)), []Code{CodePriceChanged, CodeLowStock}},
		"was free until now": {0, nil, []Code{CodePriceChanged}},
	} {
		p := sold(1, 100)
		p.Stock = tc.stock
		var got []Code
		for _, w := range warningsOf(&PricedLine{Line: &Line{ID: "1", Quantity: 1, AddedPrice: tc.added}, Product: p, Unit: unit{Base: 100}}) {
			got = append(got, w.Code)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// Without its plan or option a line costs less; the price has not gone down.
func TestWarningsOf_SayNothingOfAPriceThatLacksAPart(t *testing.T) {
	t.Parallel()
	noPlans, noOption, inactive := account(), account(), account()
	noPlans.Plans, noOption.Fields[1].Options, inactive.Active = nil, noOption.Fields[1].Options[:1], false
	email, region := FieldValue{"email", "x"}, FieldValue{"region", "us"}
	for name, tc := range map[string]struct {
		line    Line
		product *Product
		want    []Code
	}{
		"the plan is gone":               {Line{ID: "5.p59", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, account(), nil},
		"all plans are gone":             {Line{ID: "5.p51", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, noPlans, nil},
		"plans have come":                {Line{ID: "5", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, account(), nil},
		"inactive, and the plan is gone": {Line{ID: "5.p59", Quantity: 1, AddedPrice: 3500, Fields: []FieldValue{email}}, inactive, nil},
		"the option is gone":             {Line{ID: "5.p51", Quantity: 1, AddedPrice: 4025, Fields: []FieldValue{email, region}}, noOption, nil},
		"the field is gone":              {Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []FieldValue{{"age", "9"}, email}}, account(), nil},
		"all is there, and cheaper":      {Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []FieldValue{email, region}}, account(), []Code{CodePriceChanged}},
		"inactive, and cheaper":          {Line{ID: "5.p51", Quantity: 1, AddedPrice: 9000, Fields: []FieldValue{email}}, inactive, []Code{CodePriceChanged}},
	} {
		priced := price(Cart{Lines: []Line{tc.line}}, &store.Store{}, map[int64]*Product{5: tc.product}, testLimits)
		var got []Code
		for _, w := range warningsOf(&priced.Lines[0]) {
			got = append(got, w.Code)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestWarningsOf_SayWhichWayThePriceWent(t *testing.T) {
	t.Parallel()
	for added, want := range map[money.Amount]phrase{90: sayPriceRose, 110: sayPriceFell} {
		if got := warningsOf(&PricedLine{Line: &Line{ID: "1", AddedPrice: added}, Product: sold(1, 100), Unit: unit{Base: 100}})[0].fault.phrase; got != want {
			t.Errorf("from %d to 100: phrase %d, want %d", added, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	few := sold(2, 100)
	few.Stock = ptr(int64(3))
	products := map[int64]*Product{1: sold(1, 100), 2: few}
	for name, tc := range map[string]struct {
		lines            []Line
		issues, warnings []string
	}{
		"empty":            {nil, []string{"cart_empty"}, nil},
		"valid":            {[]Line{{ID: "1", Quantity: 1, AddedPrice: 100}}, nil, nil},
		"with a warning":   {[]Line{{ID: "1", Quantity: 1, AddedPrice: 99}}, nil, []string{"1 price_changed"}},
		"issue and others": {[]Line{{ID: "404", Quantity: 1}, {ID: "2", Quantity: 2}}, []string{"404 product_not_found"}, []string{"2 price_changed", "2 low_stock"}},
		"no low stock beside an issue": {
			[]Line{{ID: "2", Quantity: 4, AddedPrice: 100}}, []string{"2 insufficient_stock"}, nil,
		},
		"a new price beside an issue": {
			[]Line{{ID: "2", Quantity: 4, AddedPrice: 90}}, []string{"2 insufficient_stock"}, []string{"2 price_changed"},
		},
	} {
		p := price(Cart{Lines: tc.lines}, &store.Store{}, products, testLimits)
		v := validate(&p)
		if v.Valid() != (tc.issues == nil) {
			t.Errorf("%s: valid %v", name, v.Valid())
		}
		if diff := cmp.Diff([][]string{tc.issues, tc.warnings}, [][]string{shown(v.Issues), shown(v.Warnings)}); diff != "" {
			t.Errorf("%s: issues and warnings (-want +got)\n%s", name, diff)
		}
	}
}

// shown lists issues as "line code".
func shown(issues []LineIssue) []string {
	var list []string
	for _, i := range issues {
		text := string(i.Code)
		if i.Line != nil {
			text = string(i.Line.ID) + " " + text
		}
		list = append(list, text)
	}
	return list
}
