package cart

import (
	"slices"
	"strconv"
	"strings"
)

// fieldKeys finds the fields of a product by keys of a request. A list of operations can have thousands of keys that
// are no field, so it brings the fields' names into normal form once.
type fieldKeys struct {
	product *Product       // nil: has no field
	others  map[string]int // fields by name in normal form, or else by position; nil until a key needs it
	longest int            // bytes of a name
}

func newFieldKeys(p *Product) *fieldKeys { return &fieldKeys{product: p} }

// index finds a field by name, as the catalog spells it or in normal form, or else by position; -1 if there is none.
func (k *fieldKeys) index(key string) int {
	if k.product == nil || len(k.product.Fields) == 0 {
		return -1
	}
	fields := k.product.Fields
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == key }); i >= 0 {
		return i
	}
	if k.others == nil {
		k.prepare()
	}
	if i, ok := k.others[key]; ok {
		return i
	}
	if len(strings.TrimSpace(key)) > MostShrunk*k.longest {
		return -1
	}
	if normal := NormalText(key); normal != key {
		if i, ok := k.others[normal]; ok && NormalText(fields[i].Name) == normal { // no position
			return i
		}
	}
	return -1
}

func (k *fieldKeys) prepare() {
	fields := k.product.Fields
	k.others = make(map[string]int, 2*len(fields))
	for i := range fields {
		k.others[strconv.Itoa(i)] = i
	}
	for i := range slices.Backward(fields) { // the first of equal ones wins
		k.others[NormalText(fields[i].Name)] = i
		k.longest = max(k.longest, len(fields[i].Name))
	}
}

// field returns the field that a key names, and its name. It returns nil and the key if there is none.
func (k *fieldKeys) field(key string) (f *Field, name string) {
	if i := k.index(key); i >= 0 {
		return &k.product.Fields[i], k.product.Fields[i].Name
	}
	return nil, key
}
