package carthttp

import (
	"errors"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/deploy/assert"
)

// parsed is a request with a body, about the line 5.p51.
func parsed(t *testing.T, body string) input {
	t.Helper()
	members := assert.Must(wire.ParseObject([]byte(body)))(t)
	return input{item: "5.p51", members: object(members), lineText: carttest.Limits.LineText}
}

// invalidIn lists the members that a refusal names; nil for none.
func invalidIn(refusal *problem.Error) (members []string) {
	if refusal != nil {
		for _, f := range refusal.Faults {
			members = append(members, f.Member)
		}
	}
	return members
}

func TestAddition(t *testing.T) {
	t.Parallel()
	longest, plan := strings.Repeat("ص", cart.MaxNotice), int64(41)
	for body, want := range map[string]struct {
		addition cart.Addition
		at       []string // invalid members
	}{
		`{"product_id":1}`: {cart.Addition{ProductID: 1, Quantity: 1, QuantityMember: "qty"}, nil},
		`{"product_id":1,"qty":null,"fields":null,"x":[]}`:                                                       {cart.Addition{ProductID: 1, Quantity: 1, QuantityMember: "qty"}, nil},
		`{"product_id":1,"qty":3}`:                                                                               {cart.Addition{ProductID: 1, Quantity: 3, QuantityMember: "qty"}, nil},
		`{"product_id":1,"quantity":3}`:                                                                          {cart.Addition{ProductID: 1, Quantity: 3, QuantityMember: "quantity"}, nil},
		`{"product_id":1,"qty":3,"quantity":3.0}`:                                                                {cart.Addition{ProductID: 1, Quantity: 3, QuantityMember: "qty"}, nil},
		`{"product_id":1,"qty":null,"quantity":3}`:                                                               {cart.Addition{ProductID: 1, Quantity: 3, QuantityMember: "quantity"}, nil},
		`{"product_id":1,"subscription_plan":41}`:                                                                {cart.Addition{ProductID: 1, Quantity: 1, PlanID: &plan, QuantityMember: "qty"}, nil},
		`{"product_id":1,"subscription_plan":{"id":41,"a":{}}}`:                                                  {cart.Addition{ProductID: 1, Quantity: 1, PlanID: &plan, QuantityMember: "qty"}, nil},
		`{"product_id":1,"fields":{"a":"\u20661\r\n2\u2069","b":null}}`:                                          {cart.Addition{ProductID: 1, Quantity: 1, Fields: map[string]string{"a": "1\n2", "b": ""}, QuantityMember: "qty"}, nil},
		`{"product_id":1,"fields":{"a":" cafe\u0301\u200f","b":"\u200b","c":"\u0000"},"notice":"\ufeff \u001b"}`: {cart.Addition{ProductID: 1, Quantity: 1, Fields: map[string]string{"a": "café", "b": "", "c": ""}, QuantityMember: "qty"}, nil},
		`{"product_id":1,"notice":"  ` + strings.Repeat(`o\u0308`, cart.MaxNotice) + ` "}`:                       {cart.Addition{ProductID: 1, Quantity: 1, Notice: strings.Repeat("ö", cart.MaxNotice), QuantityMember: "qty"}, nil},
		`{"product_id":1,"notice":"` + strings.Repeat(`\u200f`, 4*cart.MaxNotice) + longest + `"}`:               {cart.Addition{ProductID: 1, Quantity: 1, Notice: longest, QuantityMember: "qty"}, nil},

		`{}`:                                               {at: []string{"product_id"}},
		`{"product_id":null}`:                              {at: []string{"product_id"}},
		`{"product_id":"1"}`:                               {at: []string{"product_id"}},
		`{"product_id":1.5}`:                               {at: []string{"product_id"}},
		`{"PRODUCT_ID":1}`:                                 {at: []string{"product_id"}},
		`{"product_id":1,"qty":-0}`:                        {at: []string{"qty"}},
		`{"product_id":1,"qty":-1e400}`:                    {at: []string{"qty"}},
		`{"product_id":1,"fields":"x"}`:                    {at: []string{"fields"}},
		`{"product_id":1,"qty":0}`:                         {at: []string{"qty"}},
		`{"product_id":1,"qty":1.5}`:                       {at: []string{"qty"}},
		`{"product_id":1,"qty":"2"}`:                       {at: []string{"qty"}},
		`{"product_id":1,"qty":2,"quantity":3}`:            {at: []string{"quantity"}},
		`{"product_id":1,"subscription_plan":"41"}`:        {at: []string{"subscription_plan"}},
		`{"product_id":1,"subscription_plan":{}}`:          {at: []string{"subscription_plan"}},
		`{"product_id":1,"subscription_plan":{"id":null}}`: {at: []string{"subscription_plan"}},
		`{"product_id":1,"notice":"x\u001b"}`:              {at: []string{"notice"}},
		`{"product_id":1,"notice":"` + strings.Repeat("x", cart.MaxNotice+1) + `"}`: {at: []string{"notice"}},
		`{"product_id":1,"qty":"x","quantity":1.5}`:                                 {at: []string{"qty", "quantity"}},
		`{"product_id":1,"qty":0,"quantity":1.5}`:                                   {at: []string{"qty", "quantity"}},
		`{"product_id":1,"fields":{"a":1,"b":"x\u0000","c":[]}}`:                    {at: []string{"fields.a", "fields.b", "fields.c"}},
		`{"qty":0,"subscription_plan":"x","fields":{"a":1},"notice":1}`:             {at: []string{"fields.a", "notice", "product_id", "qty", "subscription_plan"}},
	} {
		got, _ := parsed(t, body).addition()
		if got.Err != nil {
			if at := slices.Sorted(slices.Values(invalidIn(got.Err))); got.Err.Code != problem.ValidationFailed || !slices.Equal(at, want.at) {
				t.Errorf("%.80s: %v at %q, want %q", body, got.Err, at, want.at)
			}
			continue
		}
		diff := cmp.Diff(want.addition, got, cmpopts.EquateEmpty())
		assert.That(t, diff == "" && want.at == nil, "%.80s: accepted (-want +got)\n%s", body, diff)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		edit cart.Edit
		at   []string // invalid members
	}{
		`{"quantity":0}`:                        {cart.Edit{Quantity: new(int64(0)), QuantityMember: "quantity"}, nil},
		`{"qty":4}`:                             {cart.Edit{Quantity: new(int64(4)), QuantityMember: "qty"}, nil},
		`{"quantity":4,"qty":4}`:                {cart.Edit{Quantity: new(int64(4)), QuantityMember: "quantity"}, nil},
		`{"quantity":1e300}`:                    {cart.Edit{Quantity: new(int64(math.MaxInt64)), QuantityMember: "quantity"}, nil}, // out of any range
		`{"notice":null}`:                       {cart.Edit{Notice: new("")}, nil},
		`{"notice":" \u200b"}`:                  {cart.Edit{Notice: new("")}, nil},
		`{"fields":{"a":null,"b":" ","c":"x"}}`: {cart.Edit{Fields: map[string]string{"a": "", "b": "", "c": "x"}}, nil},
		`{"subscription_plan":{"id":7}}`:        {cart.Edit{PlanID: new(int64(7))}, nil},
		`{"metadata":{}}`:                       {cart.Edit{Metadata: cart.Metadata{}}, nil},
		`{"metadata":{"a.b_C-1":"\u202a cafe\u0301\u202c","` + strings.Repeat("n", 40) + `":null,"z":"\u200b"}}`: {cart.Edit{Metadata: cart.Metadata{"a.b_C-1": "café", strings.Repeat("n", 40): "", "z": ""}}, nil},
		`{"accept_price":0}`:       {cart.Edit{AcceptPrice: new(money.Amount(0))}, nil},
		`{"product_id":5,"qty":1}`: {cart.Edit{Quantity: new(int64(1)), QuantityMember: "qty"}, nil},
		`{"quantity":0,"fields":5,"notice":5,"subscription_plan":null}`: {cart.Edit{Quantity: new(int64(0)), QuantityMember: "quantity"}, nil},

		`{"quantity":4,"qty":5}`: {at: []string{"qty"}},
		`{}`:                     {at: []string{"quantity"}},
		`{"metadata":{"` + strings.Repeat("n", 41) + `":"x","created_by":"x","creator":1},"accept_price":"1"}`: {at: []string{"accept_price", "metadata.created_by", "metadata.creator", "metadata." + strings.Repeat("n", 41)}},
		`{"quantity":null}`:         {at: []string{"quantity"}},
		`{"quantity":-1}`:           {at: []string{"quantity"}},
		`{"qty":0.5}`:               {at: []string{"qty"}},
		`{"quantity":-1,"qty":"x"}`: {at: []string{"qty", "quantity"}},
		`{"product_id":6,"qty":1}`:  {at: []string{"product_id"}},
		`{"product_id":5}`:          {at: []string{"quantity"}},
		`{"quantity":null,"fields":null,"subscription_plan":null,"notice":"x"}`:    {at: []string{"fields", "quantity", "subscription_plan"}},
		`{"qty":-1,"fields":[],"subscription_plan":"x","notice":7,"product_id":6}`: {at: []string{"fields", "notice", "product_id", "qty", "subscription_plan"}},
	} {
		got, _ := parsed(t, body).edit()
		if got.Err != nil {
			if at := slices.Sorted(slices.Values(invalidIn(got.Err))); got.Err.Code != problem.ValidationFailed || !slices.Equal(at, want.at) {
				t.Errorf("%s: %v at %q, want %q", body, got.Err, at, want.at)
			}
			continue
		}
		diff := cmp.Diff(want.edit, got.Edit)
		assert.That(t, diff == "" && want.at == nil, "%s: accepted (-want +got)\n%s", body, diff)
	}
}

func TestCouponCode(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("خ", cart.MaxCouponCode) // twice as many bytes
	for body, want := range map[string]struct {
		code, name string
		at         []string // invalid members
	}{
		`{"coupon":"ten"}`:                    {"ten", "coupon", nil},
		`{"code":" Ten "}`:                    {" Ten ", "code", nil},
		`{"coupon":"TEN","code":"ten"}`:       {"TEN", "coupon", nil},
		`{"coupon":"\u0054EN","code":" TEN"}`: {"TEN", "coupon", nil},
		`{"coupon":null,"code":"TEN"}`:        {"TEN", "code", nil},
		`{"coupon":"` + longest + `"}`:        {longest, "coupon", nil},
		`{"coupon":"  ` + longest + ` "}`:     {"  " + longest + " ", "coupon", nil},
		`{"coupon":"T١","code":"t\u200f1"}`:   {"T١", "coupon", nil},
		`{"coupon":"` + longest + `x"}`:       {"", "coupon", []string{"coupon"}},
		`{"coupon":"TEN","code":"FIVE"}`:      {"", "coupon", []string{"code"}},
		`{"coupon":"FIVE","code":"fıve"}`:     {"", "coupon", []string{"code"}},
		`{"coupon":10,"code":20}`:             {"", "coupon", []string{"coupon", "code"}},
		`{"coupon":"TEN","code":20}`:          {"", "coupon", []string{"code"}},
		`{"coupon":"\u200b"}`:                 {"", "coupon", []string{"coupon"}},
		`{"coupon":"T\u0000"}`:                {"", "coupon", []string{"coupon"}},
		`{}`:                                  {"", "coupon", []string{"coupon"}},
	} {
		got, refusal := parsed(t, body).couponCode()
		if diff := cmp.Diff(want.at, invalidIn(refusal)); diff != "" || got.Code != want.code || refusal == nil && got.Member != want.name {
			t.Errorf("%.60s: %+v, invalid members (-want +got)\n%s", body, got, diff)
		}
	}
}

// FuzzAddition checks that every accepted addition has what the store relies on.
func FuzzAddition(f *testing.F) {
	f.Add([]byte(`{"product_id":5,"qty":2,"quantity":2.0,"subscription_plan":{"id":41},"fields":{"0":"x"},"notice":"n"}`))
	f.Add([]byte(`{"product_id":1e2,"qty":null}`))
	f.Add([]byte(`{"product_id":1,"fields":{"a":"\u0000"}}`))
	f.Add([]byte(`{"qty":1,"qty":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := wire.ParseObject(body)
		if err != nil {
			e, ok := errors.AsType[*problem.Error](err)
			assert.Require(t, ok && e.Code == problem.MalformedJSON, "refused with %v", err)
			return
		}
		a, _ := input{members: object(members), lineText: carttest.Limits.LineText}.addition()
		e := a.Err
		if e != nil {
			assert.Require(t, e.Code == problem.ValidationFailed && len(e.Members("en")) != 0, "refused with %v", e)
			return
		}
		assert.Require(t, a.Quantity >= 1 && utf8.RuneCountInString(a.Notice) <= cart.MaxNotice, "accepted %+v", a)
		for name, value := range a.Fields {
			assert.Require(t, utf8.ValidString(name) && utf8.ValidString(value) && !strings.ContainsRune(value, 0),
				"accepted the field %q: %q", name, value)
		}
	})
}

func TestVersions_AreTheTagsWithoutTheirView(t *testing.T) {
	t.Parallel()
	for want, tags := range map[string]wire.Tags{
		"":          {},
		"*":         {Any: true},
		" a.1 ":     {List: []string{"a.1-x"}},
		" a.2 ":     {List: []string{"a.2"}}, // without a view
		" a.1 a.2 ": {List: []string{"a.1-x", "a.2-y"}},
		" a,b ":     {List: []string{"a,b"}},
		" * ":       {List: []string{"*"}},
	} {
		assert.Equal(t, tags.Versions(), want, "%+v", tags)
	}
}

func TestConditionsOf_TellsRequestsApart(t *testing.T) {
	t.Parallel()
	of := func(method, path, body string, headers ...string) service.Conditions {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		on := assert.Must(conditionsOf(r.Header))(t)
		identify(&on, r, "/api", []byte(body))
		return on
	}
	for _, header := range []string{"Idempotency-Key", "X-Timestamp"} {
		one := of("POST", "/cart/add", `{"product_id":1}`, header, "1")
		again := of("POST", "/cart/add", `{"product_id":1}`, header, "1")
		assert.That(t, again == one, "%s: a repeat is another request", header)
		based := of("POST", "/api/cart/add", `{"product_id":1}`, header, "1")
		assert.That(t, based == one, "%s: under the base path it is another request", header)
		for name, other := range map[string]service.Conditions{
			"method": of("PATCH", "/cart/add", `{"product_id":1}`, header, "1"),
			"path":   of("POST", "/cart/coupon", `{"product_id":1}`, header, "1"),
			"body":   of("POST", "/cart/add", `{"product_id":11}`, header, "1"),
			"value":  of("POST", "/cart/add", `{"product_id":1}`, header, "2"),
			"split":  of("POST", "/cart/ad", `d{"product_id":1}`, header, "1"),
		} {
			assert.That(t, other != one, "%s: another %s is the same request", header, name)
		}
	}
	both := of("POST", "/cart/add", "{}", "Idempotency-Key", "1", "X-Timestamp", "1")
	assert.That(t, both.Key != "" && both.Stamp == "", "with both headers, want only the key: %+v", both)
	neither := of("POST", "/cart/add", "{}")
	assert.That(t, neither == (service.Conditions{}), "with neither header: %+v", neither)
}
