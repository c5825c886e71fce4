package ingest

// shape says how objects of a file become rows of a table. The members of an object are
// the columns of the table, except those that are named here.
type shape struct {
	table string
	keys  []string // columns that no two rows of a file may share; "line": within a line

	inherited map[string]string // columns that have the value of the parent's column
	index     string            // column with the object's place in its list, from 0
	omitted   []string          // columns that are not members
	required  []string          // members that an import requires although the column has a default
	optional  []string          // members that an import adds where they are missing

	parts []part
}

// part is a member with an object, or a list of objects, of another table.
type part struct {
	member   string
	shape    *shape
	list     bool
	required bool
	lifted   map[string]string // columns of the parent that have the value of the part's column
}

// The store is the same for all rows, so it is not among the columns.
const storeColumn = "store_id"

var (
	optionShape = &shape{
		table: "field_options", keys: []string{"line", "field", "code"}, index: "position",
		inherited: map[string]string{"product_id": "product_id", "field": "name"},
	}
	fieldShape = &shape{
		table: "fields", keys: []string{"line", "name"}, index: "position",
		inherited: map[string]string{"product_id": "id"},
		parts:     []part{{member: "options", shape: optionShape, list: true}},
	}
	planShape = &shape{
		table: "plans", keys: []string{"id"}, inherited: map[string]string{"product_id": "id"},
	}
	productShape = &shape{
		table: "products", keys: []string{"id"},
		parts: []part{{member: "plans", shape: planShape, list: true}, {member: "fields", shape: fieldShape, list: true}},
	}

	// Lines may repeat a customer or a card, if they do not contradict each other.
	customerShape = &shape{table: "customers"}
	cardShape     = &shape{table: "saved_cards", inherited: map[string]string{"customer_id": "customer_id"}, optional: []string{"id"}}

	// A trigger sets changed_in. A generated card gets its ID after all lines were read.
	subscriptionShape = &shape{
		table: "subscriptions", keys: []string{"id"}, omitted: []string{"changed_in", "saved_card_id"},
		required: []string{"created_at", "updated_at"}, // now() would make a repeated import a change
		parts: []part{
			{member: "customer", shape: customerShape, required: true, lifted: map[string]string{"customer_id": "id", "calling_code": "calling_code"}},
			{member: "card", shape: cardShape},
		},
	}
)

// all returns s and the shapes of its parts, parents first.
func (s *shape) all() []*shape {
	shapes := []*shape{s}
	for _, p := range s.parts {
		shapes = append(shapes, p.shape.all()...)
	}
	return shapes
}
