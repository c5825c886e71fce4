package carthttp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/service"
	"commerce/cart/wire"
)

const maxOps = 50

// list refuses a malformed body of POST /cart/ops, and names the faults of all operations, until the error is full.
func (in input) list() (service.List, *problem.Error) {
	each, refusal := in.members.each()
	elements, badOps := in.members.ops()
	refusal = problem.Join(refusal, badOps)
	list := service.List{Each: each, Ops: make([]service.Op, len(elements))}
	codes, loads := 0, ""
	for i, element := range elements {
		if refusal.Full() {
			break
		}
		name := fmt.Sprintf("ops.%d", i)
		if element.Kind() != '{' {
			refusal = problem.Join(refusal, problem.New(problem.ValidationFailed, name, textObject, name))
			continue
		}
		op, err := input{members: object(wire.Members(element)), lineText: in.lineText, loads: in.loads}.operation()
		if op.Coupon != nil || op.Uncode != nil {
			if codes++; codes > cart.MaxCodes {
				err = problem.Join(err, problem.New(problem.ValidationFailed, "op", textCoupons, cart.MaxCodes))
			}
		}
		if op.Load != nil {
			loads, _ = wire.Unquote(wire.Members(element)["op"])
			if len(elements) > 1 {
				err = problem.Join(err, problem.New(problem.ValidationFailed, "op", textAlone, loads))
			}
		}
		list.Ops[i], refusal = op, problem.Join(refusal, err.Within(name))
	}
	if loads != "" && !list.Each {
		refusal = problem.Join(refusal, problem.New(problem.ValidationFailed, "mode", textOnlyEach, loads))
	}
	return list, refusal
}

// each reports whether the mode is each; all is the default.
func (o object) each() (bool, *problem.Error) {
	const name = "mode"
	if !o.has(name) {
		return false, nil
	}
	switch mode, _ := wire.Unquote(o[name]); mode {
	case "each":
		return true, nil
	case "all":
		return false, nil
	}
	return false, problem.New(problem.ValidationFailed, name, textMode)
}

func (o object) ops() (elements []jsontext.Value, _ *problem.Error) {
	const name = "ops"
	if !o.has(name) {
		return nil, problem.New(problem.ValidationFailed, name, textRequired, name)
	}
	if o[name].Kind() == '[' {
		elements = wire.Elements(o[name])
	}
	if len(elements) == 0 || len(elements) > maxOps {
		return nil, problem.New(problem.ValidationFailed, name, textOps, maxOps)
	}
	return elements, nil
}

func (in input) operation() (op service.Op, refusal *problem.Error) {
	name, _ := wire.Unquote(in.members["op"])
	switch name {
	case "add":
		a, _ := in.addition()
		return service.Op{Add: &a}, a.Err
	case "edit":
		in.item, refusal = in.members.item()
		e, _ := in.edit()
		return service.Op{Edit: &e}, problem.Join(refusal, e.Err)
	case "remove":
		in.item, refusal = in.members.item()
		op, _ = in.removal()
		return op, refusal
	case "clear":
		return in.clearing()
	case "coupon":
		return in.coupon()
	case "buyer":
		op.Buyer, refusal = in.members.buyer()
		return op, refusal
	case "metadata":
		if !in.members.has("metadata") {
			return op, problem.New(problem.ValidationFailed, "metadata", textRequired, "metadata")
		}
		op.Metadata, refusal = in.members.metadata()
		return op, refusal
	}
	if load := in.loads[name]; load != nil {
		code, refusal := in.members.asSent("code")
		return service.Op{Load: func(ctx context.Context, v *service.Visit) ([]cart.Addition, error) { return load(ctx, v, code) }}, refusal
	}
	return op, problem.New(problem.ValidationFailed, "op", textOp, in.opNames())
}

// opNames lists the names of all operations.
func (in input) opNames() locale.Text {
	names := append([]string{"add", "edit", "remove", "clear", "coupon", "buyer", "metadata"}, slices.Sorted(maps.Keys(in.loads))...)
	last := len(names) - 1
	return locale.Text{
		locale.En: strings.Join(names[:last], ", ") + " or " + names[last],
		locale.Ar: strings.Join(names, " و"),
	}
}

func (in input) removal() (service.Op, *problem.Error) { return service.Op{Remove: &in.item}, nil }

func (in input) clearing() (service.Op, *problem.Error) { return service.Op{Clear: true}, nil }

func (in input) withoutCoupon() (service.Op, *problem.Error) {
	if in.code != nil {
		return service.Op{Uncode: in.code}, nil
	}
	return service.Op{Coupon: &service.CouponCode{}}, nil
}

// buyer reads the country of the operation; null is none.
func (o object) buyer() (*cart.Buyer, *problem.Error) {
	const name = "country"
	if value, given := o[name]; given && value.Kind() == 'n' {
		return &cart.Buyer{}, nil
	}
	if !o.has(name) {
		return nil, problem.New(problem.ValidationFailed, name, textRequired, name)
	}
	text, _ := wire.Unquote(o[name])
	if code := cart.ParseCountry(text); code != "" {
		return &cart.Buyer{Country: code, Source: cart.ByShopper}, nil
	}
	return nil, problem.New(problem.ValidationFailed, name, textCountry)
}

// item reads the line that an operation is about; "" if no line can have that ID.
func (o object) item() (cart.LineID, *problem.Error) {
	id, err := o.asSent("item")
	item, _ := cart.ParseLineID(id)
	return item, err
}

// asSent reads a text that this service has made.
func (o object) asSent(name string) (string, *problem.Error) {
	if !o.has(name) {
		return "", problem.New(problem.ValidationFailed, name, textRequired, name)
	}
	return asSent(o[name], name)
}

func (w view) outcomes(ops *service.Outcomes) {
	w.Array("item_ids")
	for _, o := range ops.Each {
		w.Element(string(o.Item))
	}
	w.EndArray()
	if ops.Unknown {
		w.Null("outcomes")
		return
	}
	w.Array("outcomes")
	for _, o := range ops.Each {
		w.BeginObject()
		if o.Refusal == nil {
			w.Optional("item_id", string(o.Item))
			w.replaced(o.Replaced)
		} else {
			w.Problem(o.Refusal)
			if reason, ok := o.Refusal.Data.(price.CouponReason); ok {
				w.Object("data")
				w.Text("reason", string(reason))
				w.EndObject()
			}
		}
		w.EndObject()
	}
	w.EndArray()
}

var (
	textMode = locale.Text{
		locale.En: "mode must be all or each.",
		locale.Ar: "يجب أن يكون mode إما all أو each.",
	}
	textOps = locale.Text{
		locale.En: "ops must be a list of 1 to %d operations.",
		locale.Ar: "يجب أن يكون ops قائمة من 1 إلى %d عملية.",
	}
	textOp = locale.Text{
		locale.En: "op must be %s.",
		locale.Ar: "يجب أن يكون op واحدًا من %s.",
	}
	textAlone = locale.Text{
		locale.En: "%s must be the only operation of its list.",
		locale.Ar: "يجب أن تكون %s العملية الوحيدة في القائمة.",
	}
	textOnlyEach = locale.Text{
		locale.En: "mode must be each for %s.",
		locale.Ar: "يجب أن يكون mode مساويًا لـ each عند استخدام %s.",
	}
	textCountry = locale.Text{
		locale.En: "country must be the code of a country in ISO 3166-1, such as DE.",
		locale.Ar: "يجب أن يكون country رمز دولة وفق ISO 3166-1، مثل DE.",
	}
	textOneCode = locale.Text{
		locale.En: "code must be one code.",
		locale.Ar: "يجب أن تحتوي code على رمز واحد.",
	}
	textEither = locale.Text{
		locale.En: "Use either %s or %s.",
		locale.Ar: "استخدم إما %s أو %s.",
	}
	textCoupons = locale.Text{
		locale.En: "A list can have at most %d coupon operations.",
		locale.Ar: "لا تتسع القائمة لأكثر من %d عمليات coupon.",
	}
)
