package carthttp

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/feature/plural"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/service"
	"commerce/cart/wire"
)

type object wire.Object

type input struct {
	item    cart.LineID // from the path; "" if no line can have that ID
	members object      // of the body; nil for a DELETE, whose body is not read
	code    *string     // of the coupon to remove, from the query; nil for none

	lineText int64           // limit of a line's text, in bytes
	loads    map[string]Load // by the names of their operations: see API.HandleOp
}

// readInput returns what the request says, and the bytes of it that tell one request from another: its body, or the code that its
// query names.
func readInput(c *gin.Context, basePath string) (in input, content []byte, err error) {
	in.item, _ = cart.ParseLineID(c.Param("item_id"))
	if c.Request.Method != http.MethodDelete {
		var members wire.Object
		content, members, err = wire.ReadBody(c.Request)
		in.members = object(members)
		return in, content, err
	}
	if c.FullPath() != basePath+couponPath {
		return in, nil, nil
	}
	query, malformed := url.ParseQuery(c.Request.URL.RawQuery)
	codes, given := query["code"]
	switch {
	case malformed != nil, given && (len(codes) != 1 || cart.CouponKey(codes[0]) == ""):
		return in, nil, problem.New(problem.InvalidParameter, "code", textOneCode)
	case !given:
		return in, nil, nil
	}
	in.code = &codes[0]
	return in, []byte(codes[0]), nil
}

func (o object) has(name string) bool { return wire.Object(o).Has(name) }

func (o object) whole(name string) (int64, *problem.Error) {
	n, ok := wire.WholeNumber(o[name])
	if !ok {
		return 0, problem.New(problem.ValidationFailed, name, textWholeNumber, name)
	}
	return n, nil
}

// atLeast returns a reader of a whole number that has a lower bound, and the text for a lower one.
func atLeast(least int64, tooLow locale.Text) func(object, string) (int64, *problem.Error) {
	return func(o object, name string) (int64, *problem.Error) {
		n, err := o.whole(name)
		if err == nil && n < least {
			return 0, problem.New(problem.ValidationFailed, name, tooLow, name)
		}
		return n, err
	}
}

// asSent reads a text as it was sent.
func asSent(v jsontext.Value, name string) (string, *problem.Error) {
	s, ok := wire.Unquote(v)
	if !ok {
		return "", problem.New(problem.ValidationFailed, name, textText, name)
	}
	return s, nil
}

// normalText returns a text that a person wrote in normal form; "" counts as not given.
func normalText(s, name string) (string, *problem.Error) {
	s = cart.NormalText(s)
	notText := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }
	if strings.ContainsFunc(s, notText) {
		return "", problem.New(problem.ValidationFailed, name, textPlainText, name)
	}
	return s, nil
}

// fieldText reads a shopper's answer to a field.
func fieldText(v jsontext.Value, name string) (string, *problem.Error) {
	s, err := asSent(v, name)
	if err != nil {
		return "", err
	}
	return normalText(s, name)
}

// either reads a member that has two names, and returns the name that it used. Both are allowed
// when they are equal.
func either[T comparable](o object, first, second string, read func(o object, name string) (T, *problem.Error)) (v T, name string, given bool, err *problem.Error) {
	if o.has(second) && !o.has(first) {
		first, second = second, first
	}
	if !o.has(first) {
		return v, first, false, nil
	}
	v, err = read(o, first)
	if !o.has(second) {
		return v, first, true, err
	}
	other, otherErr := read(o, second)
	if err == nil && otherErr == nil && other != v {
		return v, second, true, problem.New(problem.ValidationFailed, second, textDisagree, first, second)
	}
	return v, first, true, problem.Join(err, otherErr)
}

// addition reads the body of POST /cart/add. What is wrong with it is in the result, since the
// product may refuse more.
func (in input) addition() (cart.Addition, *problem.Error) {
	o, a := in.members, cart.Addition{}
	var badID, badQuantity, badPlan, badFields, badNotice, badMetadata *problem.Error
	a.ProductID, badID = o.productID()
	a.Quantity, a.QuantityMember, badQuantity = o.addedQuantity()
	a.PlanID, badPlan = o.plan()
	a.Fields, a.FieldKeys, badFields = o.fields(in.lineText)
	a.Notice, badNotice = o.notice()
	a.Metadata, badMetadata = o.metadata()
	a.Err = problem.Join(badID, badQuantity, badPlan, badFields, badNotice, badMetadata)
	return a, nil
}

func (o object) productID() (int64, *problem.Error) {
	const name = "product_id"
	if !o.has(name) {
		return 0, problem.New(problem.ValidationFailed, name, textRequired, name)
	}
	return o.whole(name)
}

// addedQuantity returns the quantity to add; 1 when none is given.
func (o object) addedQuantity() (n int64, name string, err *problem.Error) {
	n, name, given, err := either(o, "qty", "quantity", atLeast(1, textAtLeastOne))
	if !given {
		n = 1
	}
	return n, name, err
}

// plan reads subscription_plan: an ID, or an object with an id. nil when not given.
func (o object) plan() (*int64, *problem.Error) {
	const name = "subscription_plan"
	if !o.has(name) {
		return nil, nil
	}
	id := o[name]
	if id.Kind() == '{' {
		var plan struct {
			ID jsontext.Value `json:"id"`
		}
		_ = json.Unmarshal(id, &plan) // wire.ReadBody has checked it
		id = plan.ID
	}
	n, ok := wire.WholeNumber(id)
	if !ok {
		return nil, problem.New(problem.ValidationFailed, name, textPlanShape)
	}
	return &n, nil
}

// fields reads the answers by the keys that the client sent, which cart.Resolve checks. An answer that
// counts as not given is "". unreadable are the keys with other values than texts.
func (o object) fields(limit int64) (fields map[string]string, unreadable map[string]bool, _ *problem.Error) {
	const name = "fields"
	if !o.has(name) {
		return nil, nil, nil
	}
	given, err := o.keyed(name, maxFields)
	if err != nil {
		return nil, nil, err
	}
	fields = make(map[string]string, len(given))
	var refusals []*problem.Error
	size := 0
	for key := range given {
		if !given.has(key) {
			fields[key] = ""
			continue
		}
		value, err := fieldText(given[key], name)
		if err != nil {
			_, err = fieldText(given[key], name+"."+problem.Excerpt(key)) // most texts are good and need no name
			if unreadable == nil {
				unreadable = map[string]bool{}
			}
			refusals, unreadable[key] = append(refusals, err), true
			continue
		}
		fields[key] = value
		if size += len(value); int64(size) > 2*limit { // no line has room for it, although each field can have two keys
			return nil, nil, problem.New(problem.ValidationFailed, name, textManyBytes, name, limit)
		}
	}
	slices.SortFunc(refusals, func(a, b *problem.Error) int { return strings.Compare(a.Faults[0].Member, b.Faults[0].Member) })
	return fields, unreadable, problem.Join(refusals...)
}

// keyed reads a member that is an object with at most so many keys of the client's choice.
func (o object) keyed(name string, most int) (object, *problem.Error) {
	if o[name].Kind() != '{' {
		return nil, problem.New(problem.ValidationFailed, name, textObject, name)
	}
	given := wire.Members(o[name])
	if len(given) > most {
		return nil, problem.New(problem.ValidationFailed, name, textManyKeys, name, most)
	}
	return object(given), nil
}

// How many keys a request may give. A merge can leave as many names of metadata.
const (
	maxFields   = 100
	maxMetadata = cart.MergeFactor * cart.MaxMetadata
)

func (o object) notice() (string, *problem.Error) {
	const name = "notice"
	if !o.has(name) {
		return "", nil
	}
	return shortText(o[name], name, cart.MaxNotice)
}

func shortText(v jsontext.Value, name string, limit int64) (string, *problem.Error) {
	sent, err := asSent(v, name)
	if err != nil {
		return "", err
	}
	return short(sent, name, limit)
}

func short(s, name string, limit int64) (string, *problem.Error) {
	var err *problem.Error
	if !cart.TooLong(s, limit) {
		s, err = normalText(s, name)
	}
	if int64(utf8.RuneCountInString(s)) > limit {
		return "", problem.New(problem.ValidationFailed, name, textTextTooLong, name, characters.Of(limit))
	}
	return s, err
}

// metadata reads changes by name, "" to remove a name; nil when not given.
func (o object) metadata() (cart.Metadata, *problem.Error) {
	const name = "metadata"
	if !o.has(name) {
		return nil, nil
	}
	given, refusal := o.keyed(name, maxMetadata)
	changes := cart.Metadata{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		member := name + "." + problem.Excerpt(key)
		if !allowsMetadata(key) {
			refusal = problem.Join(refusal, problem.New(problem.ValidationFailed, member, textMetadataName, problem.Excerpt(key)))
			continue
		}
		var err *problem.Error
		if given.has(key) {
			changes[key], err = shortText(given[key], member, cart.MaxMetadataValue)
		} else {
			changes[key] = ""
		}
		refusal = problem.Join(refusal, err)
	}
	return changes, refusal
}

// allowsMetadata reports whether a name of metadata may be stored: it is short and plain, and none of those of
// members that the published client removes from responses.
func allowsMetadata(name string) bool {
	strange := func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && c != '_' && c != '.' && c != '-'
	}
	if name == "" || len(name) > cart.MaxMetadataName || strings.ContainsFunc(name, strange) {
		return false
	}
	name = strings.ToLower(name)
	switch name {
	case "email_verified_at", "deleted_at", "created_by", "updated_by", "deleted_by":
		return false
	}
	return !slices.ContainsFunc([]string{"key", "secret", "password", "token"}, func(part string) bool { return strings.Contains(name, part) })
}

// acceptedPrice reads accept_price, in minor units; nil when not given.
func (o object) acceptedPrice() (*money.Amount, *problem.Error) {
	const name = "accept_price"
	if !o.has(name) {
		return nil, nil
	}
	n, err := atLeast(0, textNotNegative)(o, name)
	if err != nil {
		return nil, err
	}
	return new(money.Amount(n)), nil
}

func (in input) couponCode() (service.CouponCode, *problem.Error) {
	_, name, given, refusal := either(in.members, "coupon", "code", object.couponKey)
	if !given {
		refusal = problem.New(problem.ValidationFailed, name, textRequired, name)
	}
	if refusal != nil {
		return service.CouponCode{}, refusal
	}
	code, refusal := asSent(in.members[name], name)
	return service.CouponCode{Code: code, Member: name}, refusal
}

// coupon reads the operation coupon: a code to add, null to remove all, or remove with one to remove.
func (in input) coupon() (service.Op, *problem.Error) {
	const removed = "remove"
	value, named := in.members["coupon"], in.members.has("coupon") || in.members.has("code")
	_, removes := in.members[removed]
	switch {
	case removes && (named || value.Kind() == 'n'):
		return service.Op{}, problem.New(problem.ValidationFailed, removed, textEither, removed, "coupon")
	case removes:
		_, refusal := in.members.couponKey(removed)
		code, _ := asSent(in.members[removed], removed)
		return service.Op{Uncode: &code}, refusal
	case value.Kind() == 'n' && !in.members.has("code"):
		return in.withoutCoupon()
	}
	code, refusal := in.couponCode()
	return service.Op{Coupon: &code}, refusal
}

func (o object) couponKey(name string) (string, *problem.Error) {
	code, err := asSent(o[name], name)
	if err != nil {
		return "", err
	}
	key := cart.CouponKey(code)
	visible, err := short(key, name, cart.MaxCouponCode)
	if err == nil && visible == "" {
		err = problem.New(problem.ValidationFailed, name, textRequired, name)
	}
	return key, err
}

// edit reads the path and the body of PATCH /cart/items/<item_id>. What is wrong with it is in the
// result, as in addition. A quantity of 0 removes the line, whatever else the body has.
func (in input) edit() (service.Edit, *problem.Error) {
	o, e := in.members, service.Edit{Item: in.item}
	quantity, member, given, badQuantity := either(o, "quantity", "qty", atLeast(0, textNotNegative))
	if given && badQuantity == nil {
		if e.Quantity, e.QuantityMember = &quantity, member; quantity == 0 {
			return e, nil
		}
	}
	var badPlan, badFields, badNotice, badMetadata, badPrice *problem.Error
	e.PlanID, badPlan = o.plan()
	e.Fields, e.FieldKeys, badFields = o.fields(in.lineText)
	if _, ok := o["notice"]; ok {
		var notice string
		if notice, badNotice = o.notice(); badNotice == nil {
			e.Notice = &notice
		}
	}
	e.Metadata, badMetadata = o.metadata()
	e.AcceptPrice, badPrice = o.acceptedPrice()
	e.Err = problem.Join(badQuantity, badPlan, badFields, badNotice, badMetadata, badPrice, o.neverNull(), in.otherProduct())
	given = given || e.PlanID != nil || e.Fields != nil || e.Notice != nil || e.Metadata != nil || e.AcceptPrice != nil
	if e.Err == nil && !given {
		e.Err = problem.New(problem.ValidationFailed, "quantity", textNothingToEdit)
	}
	return e, nil
}

// neverNull refuses null for the members of an edit that it cannot clear.
func (o object) neverNull() *problem.Error {
	var refusals []*problem.Error
	for _, name := range []string{"quantity", "qty", "fields", "subscription_plan", "metadata", "accept_price"} {
		if _, ok := o[name]; ok && !o.has(name) {
			refusals = append(refusals, problem.New(problem.ValidationFailed, name, textNotNull, name))
		}
	}
	return problem.Join(refusals...)
}

// otherProduct refuses an edit that asks for another product, which would have no effect.
func (in input) otherProduct() *problem.Error {
	const name = "product_id"
	if !in.members.has(name) {
		return nil
	}
	id, err := in.members.whole(name)
	if err == nil && in.item != "" && id != in.item.Product() {
		err = problem.New(problem.ValidationFailed, name, textOtherProduct)
	}
	return err
}

// characters is the length of a text. The Arabic forms are those after a preposition (genitive).
var characters = locale.Noun{locale.Ar: {
	plural.Zero:  "0 حرف",
	plural.One:   "حرف واحد",
	plural.Two:   "حرفين",
	plural.Few:   "{n} أحرف",
	plural.Many:  "{n} حرفًا",
	plural.Other: "{n} حرف",
}}

var (
	textRequired = locale.Text{
		locale.En: "%s is required.",
		locale.Ar: "الحقل %s مطلوب.",
	}
	textWholeNumber = locale.Text{
		locale.En: "%s must be a whole number.",
		locale.Ar: "يجب أن يكون %s عددًا صحيحًا.",
	}
	textAtLeastOne = locale.Text{
		locale.En: "%s must be 1 or more.",
		locale.Ar: "يجب ألا يقل %s عن واحد.",
	}
	textNothingToEdit = locale.Text{
		locale.En: "Send at least one of quantity, fields, subscription_plan, notice, metadata and accept_price.",
		locale.Ar: "أرسل واحدًا على الأقل من quantity وfields وsubscription_plan وnotice وmetadata وaccept_price.",
	}
	textMetadataName = locale.Text{
		locale.En: "“%s” is not allowed as a name of metadata.",
		locale.Ar: "لا يُسمح باستخدام «%s» اسمًا في metadata.",
	}
	textNotNull = locale.Text{
		locale.En: "%s must not be null.",
		locale.Ar: "يجب ألا تكون قيمة %s فارغة (null).",
	}
	textOtherProduct = locale.Text{
		locale.En: "The product of an item cannot be changed. Remove the item and add the other product.",
		locale.Ar: "لا يمكن تغيير المنتج في هذا العنصر. أزل العنصر ثم أضف المنتج الآخر.",
	}
	textNotNegative = locale.Text{
		locale.En: "%s must be 0 or more.",
		locale.Ar: "يجب ألا يقل %s عن صفر.",
	}
	textDisagree = locale.Text{
		locale.En: "%s and %s have different values. Send only one of them.",
		locale.Ar: "قيمتا %s و%s مختلفتان. أرسل واحدًا منهما فقط.",
	}
	textText = locale.Text{
		locale.En: "%s must be text.",
		locale.Ar: "يجب أن يكون %s نصًا.",
	}
	textManyKeys = locale.Text{
		locale.En: "%s has more than %d keys.",
		locale.Ar: "عدد المفاتيح في %s أكبر من %d.",
	}
	textObject = locale.Text{
		locale.En: "%s must be an object.",
		locale.Ar: "يجب أن يكون %s كائنًا.",
	}
	textPlanShape = locale.Text{
		locale.En: "subscription_plan must be a plan's ID, or an object with that ID as id.",
		locale.Ar: "يجب أن يكون subscription_plan معرّف خطة، أو كائنًا يحمل هذا المعرّف في id.",
	}
	textTextTooLong = locale.Text{
		locale.En: "%s is too long. The limit is %s characters.",
		locale.Ar: "النص في %s أطول من المسموح به، ولا يُقبل فيه أكثر من %s.",
	}
	textManyBytes = locale.Text{
		locale.En: "%s is too long. The limit is %d bytes.",
		locale.Ar: "النص في %s أطول من المسموح به. الحد الأقصى %d بايت.",
	}
	textPlainText = locale.Text{
		locale.En: "%s contains characters that are not allowed.",
		locale.Ar: "يحتوي %s على أحرف غير مسموح بها.",
	}
)
