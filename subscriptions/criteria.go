package subscriptions

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"commerce/auth/locale"
)

// Criteria has every filter of lists once, in the order in which URLs repeat them. A new one is a member of
// Filter, a row here and a parameter in openapi.yaml.
var Criteria = []*Criterion{
	member(func(f *Filter) *string { return &f.Email }, parseEmail, foldEmail, Criterion{
		Name: "customerEmail", Invalid: textEmail.With(),
		Customer: func(f *Filter, arg func(any) string) string {
			return folded("email") + " = " + folded(arg(f.Email)+"::text")
		},
		Matches: func(f *Filter, _ *Subscription, c *Customer) bool { return foldEmail(f.Email) == foldEmail(c.Email) },
	}),
	member(func(f *Filter) *Phone { return &f.Phone }, ParsePhone, asText, Criterion{
		Name: "customerPhone", Invalid: textPhone.With(),
		Customer: func(f *Filter, arg func(any) string) string {
			phone, nationals := arg(string(f.Phone)), arg(f.Phone.Nationals())
			without := "ltrim(regexp_replace(" + phone + ", '^' || calling_code, ''), '0')"
			return "(national_phone = ANY(" + nationals + ") OR uncoded_phone = ANY(" + nationals + "))" +
				" AND (" + phone + " IN (national_phone, uncoded_phone) OR " + without + " IN (national_phone, uncoded_phone))"
		},
		Matches: func(f *Filter, _ *Subscription, c *Customer) bool {
			national, uncoded := NationalPhone(c.Phone, c.CallingCode)
			return f.Phone.Matches(c.CallingCode, national, uncoded)
		},
	}),
	member(func(f *Filter) *string { return &f.CallingCode }, parseCallingCode, asText, Criterion{
		Name: "customerCountryCode", Invalid: textCallingCode.With(),
		Customer: callingCodeSQL, Row: callingCodeSQL, Index: ByCode, // subscriptions have a copy
		Matches: func(f *Filter, _ *Subscription, c *Customer) bool { return f.CallingCode == c.CallingCode },
	}),
	member(func(f *Filter) *StatusSet { return &f.Statuses }, ParseStatuses, StatusSet.String, Criterion{
		Name: "status", Invalid: textStatuses.With(), Sort: AlsoSorted,
		Row:     func(f *Filter, arg func(any) string) string { return "status = ANY(" + arg(f.Statuses.Names()) + ")" },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return f.Statuses.Has(s.Status) },
	}),
	member(func(f *Filter) *string { return &f.ExternalCustomerID }, parseExternalCustomer, asText, Criterion{
		Name: "externalCustomerId", Invalid: textExternalCustomer.With(), Index: Few,
		Row: func(f *Filter, arg func(any) string) string { // the length is the condition of the index
			return "length(external_customer_id) <= 255 AND external_customer_id = " + arg(f.ExternalCustomerID)
		},
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool {
			return f.ExternalCustomerID == s.ExternalCustomerID
		},
	}),
	member(func(f *Filter) *int64 { return &f.OrderID }, WholeNumber[int64](math.MaxInt64), numberText, Criterion{
		Name: "orderId", Invalid: WantsNumber[int64]("orderId", math.MaxInt64), Index: Few,
		Row:     func(f *Filter, arg func(any) string) string { return "order_id = " + arg(f.OrderID) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return f.OrderID == s.OrderID },
	}),
	member(func(f *Filter) *IDSet { return &f.IDs }, ParseIDs, asText, Criterion{
		Name: "ids", Invalid: textIDs.With(), Index: Few,
		Row:     func(f *Filter, arg func(any) string) string { return "id = ANY(" + arg(f.IDs.Numbers()) + ")" },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return slices.Contains(f.IDs.Numbers(), s.ID) },
	}),
	member(func(f *Filter) *int64 { return &f.ProductID }, WholeNumber[int64](math.MaxInt64), numberText, Criterion{
		Name: "productId", Invalid: WantsNumber[int64]("productId", math.MaxInt64), Index: ByProduct,
		Row:     func(f *Filter, arg func(any) string) string { return "product_id = " + arg(f.ProductID) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return f.ProductID == s.Product.ID },
	}),
	member(func(f *Filter) *int64 { return &f.VariantID }, WholeNumber[int64](math.MaxInt64), numberText, Criterion{
		Name: "variantId", Invalid: WantsNumber[int64]("variantId", math.MaxInt64), Index: ByVariant,
		Row:     func(f *Filter, arg func(any) string) string { return "variant_id = " + arg(f.VariantID) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return f.VariantID == s.Variant.ID },
	}),
	member(func(f *Filter) *Answer { return &f.CancelAtPeriodEnd }, parseAnswer, asText, Criterion{
		Name: "cancelAtPeriodEnd", Invalid: textAnswer.With("cancelAtPeriodEnd"),
		Index: ByEnd, Common: func(f *Filter) bool { return f.CancelAtPeriodEnd == No },
		Row: func(f *Filter, _ func(any) string) string { // the condition of an index, so it is no argument
			if f.CancelAtPeriodEnd == Yes {
				return "cancel_at_period_end"
			}
			return "NOT cancel_at_period_end"
		},
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool {
			return (f.CancelAtPeriodEnd == Yes) == s.CancelAtPeriodEnd
		},
	}),
	member(func(f *Filter) *time.Time { return &f.CreatedFrom }, parseDay, timeText, Criterion{
		Name: "createdFrom", Invalid: textDay.With("createdFrom"), Index: ByDay,
		Row:     func(f *Filter, arg func(any) string) string { return DaySQL + " >= " + arg(f.CreatedFrom) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return !s.CreatedAt.Before(f.CreatedFrom) },
	}),
	member(func(f *Filter) *time.Time { return &f.CreatedBefore }, parseLastDay, timeText, Criterion{
		Name: "createdTo", Invalid: textDay.With("createdTo"), Index: ByDay, From: "createdFrom",
		Row:     func(f *Filter, arg func(any) string) string { return DaySQL + " < " + arg(f.CreatedBefore) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return s.CreatedAt.Before(f.CreatedBefore) },
	}),
	member(func(f *Filter) *time.Time { return &f.PeriodEndFrom }, parseDay, timeText, Criterion{
		Name: "periodEndFrom", Invalid: textDay.With("periodEndFrom"), Sort: OnlySorted,
		Row:     func(f *Filter, arg func(any) string) string { return "current_period_end >= " + arg(f.PeriodEndFrom) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return !s.PeriodEnd.Before(f.PeriodEndFrom) },
	}),
	member(func(f *Filter) *time.Time { return &f.PeriodEndBefore }, parseLastDay, timeText, Criterion{
		Name: "periodEndTo", Invalid: textDay.With("periodEndTo"), Sort: OnlySorted, From: "periodEndFrom",
		Row:     func(f *Filter, arg func(any) string) string { return "current_period_end < " + arg(f.PeriodEndBefore) },
		Matches: func(f *Filter, s *Subscription, _ *Customer) bool { return s.PeriodEnd.Before(f.PeriodEndBefore) },
	}),
}

// member completes a criterion with how its member is read and written. A zero member matches everything.
func member[V comparable](of func(*Filter) *V, parse func(string) (V, bool), text func(V) string, c Criterion) *Criterion {
	c.Read = func(f *Filter, value string) (ok bool) {
		*of(f), ok = parse(value)
		return ok
	}
	c.Text = func(f *Filter) string {
		var none V
		if v := *of(f); v != none {
			return text(v)
		}
		return ""
	}
	return &c
}

func asText[T ~string](t T) string    { return string(t) }
func numberText(n int64) string       { return strconv.FormatInt(n, 10) }
func timeText(t time.Time) string     { return t.UTC().Format(time.RFC3339Nano) }
func foldEmail(address string) string { return cases.Lower(language.Und).String(address) } // as folded does

// folded returns an SQL expression for an address in lower case, independent of the
// locale of the database. The index customers_by_email is on this expression.
func folded(address string) string {
	return "(lower(" + address + ` COLLATE "und-x-icu") COLLATE "C")`
}

// DaySQL is the day on which a subscription was created. The index subscriptions_by_day is on this expression.
const DaySQL = "((created_at AT TIME ZONE 'UTC')::date)"

func callingCodeSQL(f *Filter, arg func(any) string) string {
	return "calling_code = " + arg(f.CallingCode)
}

const maxEmail = 254 // characters; the maximum of RFC 5321

// parseEmail checks only enough to refuse a name or SQL, which would otherwise be an
// address without subscriptions.
func parseEmail(s string) (string, bool) {
	local, domain, found := strings.Cut(s, "@")
	return s, found && local != "" && domain != "" && !strings.Contains(domain, "@") &&
		utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxEmail &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func parseCallingCode(s string) (string, bool) {
	_, ok := WholeNumber(9999)(s)
	return s, ok
}

// parseExternalCustomer refuses only what no stored ID can be.
func parseExternalCustomer(s string) (string, bool) {
	return s, utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxExternalCustomer && !strings.Contains(s, "\x00")
}

// Answer is what a filter wants of a member that is true or false. The zero Answer wants neither.
type Answer string

const (
	Yes Answer = "true"
	No  Answer = "false"
)

func parseAnswer(s string) (Answer, bool) {
	a := Answer(s)
	return a, a == Yes || a == No
}

// maxIDs is the maximum number of IDs in a list.
const maxIDs = 100

// IDSet is a list of IDs without duplicates, the lowest first, with commas. The zero IDSet has none.
type IDSet string

// ParseIDs reads a list of 1 to 100 positive IDs.
func ParseIDs(s string) (IDSet, bool) {
	texts := strings.SplitN(s, ",", maxIDs+1)
	all := make([]int64, len(texts))
	for i, text := range texts {
		id, ok := WholeNumber[int64](math.MaxInt64)(text)
		if !ok {
			return "", false
		}
		all[i] = id
	}
	slices.Sort(all)
	texts = texts[:0]
	for _, id := range slices.Compact(all) {
		texts = append(texts, numberText(id))
	}
	return IDSet(strings.Join(texts, ",")), len(all) <= maxIDs
}

// Numbers returns the IDs.
func (s IDSet) Numbers() (all []int64) {
	for text := range strings.SplitSeq(string(s), ",") {
		id, _ := strconv.ParseInt(text, 10, 64)
		all = append(all, id)
	}
	return all
}

// parseDay reads the beginning of a day. The first day that can be shown has none, and the last one no
// end, so that a filter matches what is shown.
func parseDay(s string) (time.Time, bool) {
	day, err := time.Parse(time.DateOnly, s)
	return day, err == nil && day.Year() > 0
}

// parseLastDay reads the end of a day.
func parseLastDay(s string) (time.Time, bool) {
	day, ok := parseDay(s)
	if day = day.AddDate(0, 0, 1); day.After(lastShown) {
		return time.Time{}, ok
	}
	return day, ok
}

// WholeNumber returns a function that reads a number from 1 to limit without a sign, leading
// zeros or a fraction.
func WholeNumber[N int | int64](limit N) func(string) (N, bool) {
	return func(s string) (N, bool) {
		n, err := strconv.ParseInt(s, 10, 64)
		return N(n), err == nil && 1 <= n && n <= int64(limit) && strconv.FormatInt(n, 10) == s
	}
}

// WantsNumber returns the sentence that refuses what WholeNumber does not read.
func WantsNumber[N int | int64](parameter string, limit N) locale.Sentence {
	return textNumber.With(parameter, limit)
}

var (
	textNumber = locale.Text{
		locale.En: "%s must be a whole number from 1 to %d.",
		locale.Ar: "يجب أن يكون %s عددًا صحيحًا من 1 إلى %d.",
	}
	textEmail = locale.Text{
		locale.En: "customerEmail must be an e-mail address of at most 254 characters.",
		locale.Ar: "يجب أن يكون customerEmail عنوان بريد إلكتروني لا يتجاوز 254 حرفًا.",
	}
	textPhone = locale.Text{
		locale.En: "customerPhone must be a telephone number of 1 to 20 digits.",
		locale.Ar: "يجب أن يكون customerPhone رقم هاتف من 1 إلى 20 خانة.",
	}
	textCallingCode = locale.Text{
		locale.En: "customerCountryCode must be 1 to 4 digits, the first one not 0, such as 966.",
		locale.Ar: "يجب أن يكون customerCountryCode من 1 إلى 4 أرقام أولها ليس 0، مثل 966.",
	}
	textStatuses = locale.Text{
		locale.En: "status must be one or more of trialing, active, past_due, paused, canceled and expired, separated by commas, each only once.",
		locale.Ar: "يجب أن يكون status حالة واحدة أو أكثر من trialing وactive وpast_due وpaused وcanceled وexpired، تفصل بينها فواصل (,) دون تكرار.",
	}
	textExternalCustomer = locale.Text{
		locale.En: "externalCustomerId must be valid text of at most 255 characters.",
		locale.Ar: "يجب أن يكون externalCustomerId نصًا صالحًا لا يتجاوز 255 حرفًا.",
	}
	textIDs = locale.Text{
		locale.En: "ids must be 1 to 100 positive whole numbers, separated by commas.",
		locale.Ar: "يجب أن يكون ids من 1 إلى 100 عدد صحيح موجب، تفصل بينها فواصل (,).",
	}
	textAnswer = locale.Text{
		locale.En: "%s must be true or false.",
		locale.Ar: "يجب أن يكون %s إما true أو false.",
	}
	textDay = locale.Text{
		locale.En: "%s must be a date such as 2025-11-30.",
		locale.Ar: "يجب أن يكون %s تاريخًا مثل 2025-11-30.",
	}
)
