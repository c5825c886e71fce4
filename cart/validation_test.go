package cart

import (
	"testing"

	"commerce/auth/store"
	"commerce/deploy/assert"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	few := sold(2, 100)
	few.Stock = new(int64(3))
	products := map[int64]*Product{1: sold(1, 100), 2: few}
	for name, tc := range map[string]struct {
		lines            []Line
		issues, warnings []string
	}{
		"empty":            {nil, []string{"cart_empty"}, nil},
		"valid":            {[]Line{{ID: "1", Quantity: 1, AddedPrice: 100}}, nil, nil},
		"with a warning":   {[]Line{{ID: "1", Quantity: 1, AddedPrice: 99}}, nil, []string{"1 price_changed"}},
		"issue and others": {[]Line{{ID: "404", Quantity: 1}, {ID: "2", Quantity: 2}}, []string{"404 product_not_found"}, []string{"2 price_changed", "2 low_stock"}},
		"no low stock warning with an issue": {
			[]Line{{ID: "2", Quantity: 4, AddedPrice: 100}}, []string{"2 insufficient_stock"}, nil,
		},
		"price warning with an issue": {
			[]Line{{ID: "2", Quantity: 4, AddedPrice: 90}}, []string{"2 insufficient_stock"}, []string{"2 price_changed"},
		},
	} {
		p := Price(Cart{Lines: tc.lines}, &store.Store{}, products, testLimits)
		v := Validate(&p)
		if v.Valid() != (tc.issues == nil) {
			t.Errorf("%s: valid %v", name, v.Valid())
		}
		assert.Equal(t, [][]string{shown(v.Issues), shown(v.Warnings)}, [][]string{tc.issues, tc.warnings},
			"%s: issues and warnings", name)
	}
}

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
