package cart

import (
	"maps"
	"slices"
	"strconv"
)

// fieldKeys finds the fields of a product by keys of a request. A list of operations can have thousands of keys that
// are no field, so it brings names and keys into normal form once.
type fieldKeys struct {
	product *Product       // nil: has no field
	fields  map[string]int // by name, as the catalog spells it or in normal form, or else by position; nil until a key needs it
	longest int            // bytes of a name in normal form
	known   map[string]int // what index returned for keys that are not in normal form
}

func newFieldKeys(p *Product) *fieldKeys { return &fieldKeys{product: p} }

// index finds a field by name, as the catalog spells it or in normal form, or else by position; -1 if there is none.
func (k *fieldKeys) index(key string) int {
	if k.product == nil || len(k.product.Fields) == 0 {
		return -1
	}
	if k.fields == nil {
		if i := slices.IndexFunc(k.product.Fields, func(f Field) bool { return f.Name == key }); i >= 0 {
			return i
		}
		k.prepare()
	}
	if i, ok := k.fields[key]; ok {
		return i
	}
	if i, ok := k.known[key]; ok {
		return i
	}
	if exceeds(key, k.longest) {
		return -1
	}
	normal := NormalText(key)
	if normal == key {
		return -1
	}
	i, ok := k.fields[normal]
	if !ok || NormalText(k.product.Fields[i].Name) != normal { // a position, or the name of another field as it is spelled
		i = -1
	}
	k.known[key] = i
	return i
}

func (k *fieldKeys) prepare() {
	fields := k.product.Fields
	k.fields, k.known = make(map[string]int, 2*len(fields)), map[string]int{}
	for i := range fields {
		k.fields[strconv.Itoa(i)] = i
	}
	for i, f := range slices.Backward(fields) { // the first of equal ones wins
		normal := NormalText(f.Name)
		k.fields[normal] = i
		k.longest = max(k.longest, len(normal))
	}
	for i, f := range slices.Backward(fields) {
		k.fields[f.Name] = i
	}
}

// unknown returns keys that name neither a field nor one of held, sorted: the first ones, up to most.
func (k *fieldKeys) unknown(given map[string]string, held []FieldValue, most int) (unknown []string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if k.index(key) >= 0 {
			continue
		}
		if _, ok := answerOf(held, key); ok {
			continue
		}
		if unknown = append(unknown, key); len(unknown) == most {
			break
		}
	}
	return unknown
}

// field returns the field that a key names, and its name. It returns nil and the key if there is none.
func (k *fieldKeys) field(key string) (f *Field, name string) {
	if i := k.index(key); i >= 0 {
		return &k.product.Fields[i], k.product.Fields[i].Name
	}
	return nil, key
}
