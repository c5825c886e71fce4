package cart

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
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

// answerFields matches the shopper's answers to the product's fields, sorted by name so that the
// same answers give the same line. "" is no answer. A refusal names every invalid field in the
// product's order, then the unknown keys, up to most (0: problem.MaxFaults); it comes with the valid answers
// before that. If there are as many unknown keys, it names only these. The fields of unreadable keys are not missing.
func answerFields(given map[string]string, in *fieldKeys, unreadable map[string]bool, most int) ([]FieldValue, *problem.Error) {
	p := in.product
	most = cmp.Or(most, problem.MaxFaults)
	if len(given) == 0 && len(p.Fields) == 0 {
		return nil, nil
	}
	unknown := in.unknown(given, nil, most)
	if len(unknown) == most {
		return nil, noFields(unknown, p)
	}
	answers := slices.Grow([]FieldValue(nil), min(len(given), len(p.Fields)))
	var refusals []*problem.Error
	keys := make([][]string, len(p.Fields)) // per field, the keys that the shopper sent
	for key := range given {
		if i := in.index(key); i >= 0 {
			keys[i] = append(keys[i], key)
		}
	}
	skipped := map[int]bool{}
	for key := range unreadable {
		skipped[in.index(key)] = true
	}
	for i := range p.Fields {
		if len(refusals) == most {
			break
		}
		if skipped[i] {
			continue
		}
		f := &p.Fields[i]
		slices.Sort(keys[i])
		value, refusal := answer(f, keys[i], given, p.Name)
		if refusal != nil {
			refusals = append(refusals, refusal)
		}
		if value != "" {
			answers = append(answers, FieldValue{Name: f.Name, Value: value})
		}
	}
	slices.SortFunc(answers, func(a, b FieldValue) int { return strings.Compare(a.Name, b.Name) })
	refusals = append(refusals, noFields(unknown[:min(most-len(refusals), len(unknown))], p))
	return answers, problem.Join(refusals...)
}

func noFields(keys []string, p *Product) *problem.Error {
	refusals := make([]*problem.Error, len(keys))
	for i, key := range keys {
		key = problem.Excerpt(key)
		refusals[i] = problem.New(problem.FieldInvalid, "fields."+key, textNoField, key, p.Name)
	}
	return problem.Join(refusals...)
}

// answer returns the answer to one field, under any of keys: text or an option's code; "" for none.
func answer(f *Field, keys []string, given map[string]string, product locale.Name) (string, *problem.Error) {
	var value string
	for _, key := range keys {
		v := given[key]
		if v == "" {
			continue
		}
		if len(f.Options) > 0 {
			o := f.Option(v)
			if o == nil {
				return "", problem.New(problem.FieldInvalid, "fields."+problem.Excerpt(key), textNoOption, f.Name, product)
			}
			v = o.Code
		}
		if value != "" && value != v {
			return "", problem.New(problem.FieldInvalid, "fields."+problem.Excerpt(key), textFieldTwice, f.Name)
		}
		value = v
	}
	if value == "" && f.Required {
		return "", problem.New(problem.FieldMissing, "fields."+f.Name, textFieldMissing, f.Name, product)
	}
	return value, nil
}

func answerOf(fields []FieldValue, name string) (value string, ok bool) {
	i, ok := slices.BinarySearchFunc(fields, name, func(f FieldValue, name string) int {
		return strings.Compare(f.Name, name)
	})
	if ok {
		value = fields[i].Value
	}
	return value, ok
}

var (
	textFieldMissing = locale.Text{
		locale.En: "“%s” is required for “%s”.",
		locale.Ar: "الحقل «%s» مطلوب للمنتج «%s».",
	}
	textNoField = locale.Text{
		locale.En: "“%s” is not a field of “%s”.",
		locale.Ar: "«%s» ليس من حقول المنتج «%s».",
	}
	textNoOption = locale.Text{
		locale.En: "The option selected for “%s” is not available for “%s”.",
		locale.Ar: "الخيار المحدد في «%s» غير متوفر للمنتج «%s».",
	}
	textFieldTwice = locale.Text{
		locale.En: "“%s” was sent twice with different values.",
		locale.Ar: "أُرسل الحقل «%s» مرتين بقيمتين مختلفتين.",
	}
)
