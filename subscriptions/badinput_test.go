package subscriptions_test

import (
	"net/url"
	"strings"
	"testing"

	"commerce/auth/locale"
)

// Every refusal names the parameter, and none returns rows.
func TestList_RefusesInvalidParameters(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		for _, tt := range []struct{ query, at string }{
			{"page=0", "page"},
			{"page=-1", "page"},
			{"page=1000001", "page"},
			{"page=66668", "page"}, // skips 1,000,005 rows
			{"page=10002&per_page=100", "page"},
			{"page=1000000&per_page=2", "page"},
			{"page=10002&per_page=100&customerCountryCode=966", "page"},
			{"page=9007199254740993&cursor=AAAA", "page"},
			{"page=1000001&cursor=AAAA", "cursor"},
			{"page=9223372036854775808", "page"},
			{"page=" + strings.Repeat("9", 1000), "page"},
			{"page=1.0", "page"},
			{"page=1e1", "page"},
			{"page=01", "page"},
			{"page=%2B1", "page"},
			{"page=+1", "page"},
			{"page=one", "page"},
			{"page=", "page"},
			{"page", "page"},
			{"page=1&page=1", "page"},
			{"page=1&page=2", "page"},
			{"per_page=0", "per_page"},
			{"per_page=101", "per_page"},
			{"per_page=-15", "per_page"},
			{"per_page=٥", "per_page"},
			{"customerEmail=", "customerEmail"},
			{"customerEmail=sara", "customerEmail"},
			{"customerEmail=@", "customerEmail"},
			{"customerEmail=a@b@c", "customerEmail"},
			{"customerEmail=a@b%00", "customerEmail"},
			{"customerEmail=a@%FF", "customerEmail"},
			{"customerEmail=a%20@b", "customerEmail"},
			{"customerEmail=" + url.QueryEscape("' OR 1=1 --"), "customerEmail"},
			{"customerEmail=" + strings.Repeat("a", 253) + "@b", "customerEmail"},
			{"customerEmail=a@b&customerEmail=a@b", "customerEmail"},
			{"customerPhone=", "customerPhone"},
			{"customerPhone=abc", "customerPhone"},
			{"customerPhone=0", "customerPhone"},
			{"customerPhone=" + strings.Repeat("1", 21), "customerPhone"},
			{"customerPhone=" + url.QueryEscape("1; DROP TABLE subscriptions"), "customerPhone"},
			{"customerCountryCode=", "customerCountryCode"},
			{"customerCountryCode=%2B966", "customerCountryCode"},
			{"customerCountryCode=SA", "customerCountryCode"},
			{"customerCountryCode=12345", "customerCountryCode"},
			{"customerCountryCode=9%2066", "customerCountryCode"},
			{"status=", "status"},
			{"status", "status"},
			{"status=cancelled", "status"},
			{"status=Active", "status"},
			{"status=active,", "status"},
			{"status=,active", "status"},
			{"status=active,,paused", "status"},
			{"status=active,active", "status"},
			{"status=active,paused,active", "status"},
			{"status=active,+paused", "status"},
			{"status=active;paused", "query"},
			{"status=active%00", "status"},
			{"status=active&status=paused", "status"},
			{"status=" + strings.Repeat("active,", 10_000), "status"},
			{"status[]=active", "status[]"},
			{"externalCustomerId=", "externalCustomerId"},
			{"externalCustomerId=%00", "externalCustomerId"},
			{"externalCustomerId=crm%FF", "externalCustomerId"},
			{"externalCustomerId=" + strings.Repeat("x", 256), "externalCustomerId"},
			{"externalCustomerId=" + strings.Repeat("٥", 256), "externalCustomerId"},
			{"externalCustomerId=a&externalCustomerId=a", "externalCustomerId"},
			{"externalCustomerID=a", "externalCustomerID"},
			{"external_customer_id=a", "external_customer_id"},
			{"cursor=", "cursor"},
			{"cursor=AAAA", "cursor"},
			{"cursor=" + strings.Repeat("A", 1000), "cursor"},
			{"cursor=%00", "cursor"},
			{"customeremail=a@b", "customeremail"},
			{"customerEmail[]=a@b", "customerEmail[]"},
			{"email=a@b", "email"},
			{"perPage=10", "perPage"},
			{"sort=id", "sort"},
			{"=1", "query"},
			{"page=%zz", "query"},
			{"page=1;per_page=2", "query"},
		} {
			refused := b.refused(t, "http://shop.test/subscriptions?"+tt.query, 1)
			if refused.Code != "invalid_parameter" || len(refused.Errors[tt.at]) != 1 || refused.Message == "" {
				t.Errorf("%.80s: %+v, want invalid_parameter at %q", tt.query, refused, tt.at)
			}
		}
		tooFar := b.refused(t, "http://shop.test/subscriptions?page=10002&per_page=100", 1)
		if !strings.Contains(tooFar.Message, "next_page_url") {
			t.Errorf("a page number that is too high: %q, want advice to follow links", tooFar.Message)
		}
		several := b.refused(t, "http://shop.test/subscriptions?page=0&per_page=0&colour=red", 1)
		if len(several.Errors) != 3 {
			t.Errorf("three invalid parameters: %+v", several.Errors)
		}
	})
}

func TestList_AcceptsEveryParameterAtItsLimits(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		for _, query := range []string{
			"page=1", "page=66667", "page=1000000&per_page=1", "per_page=1", "per_page=100", "page=10001&per_page=100",
			"customerEmail=a@b", "customerEmail=" + strings.Repeat("a", 252) + "@b", "customerEmail=" + url.QueryEscape("'OR''=''@b"),
			"customerPhone=1", "customerPhone=" + url.QueryEscape("\u202a+٩٦٦\u00a0٥٠١٢٣٤٥٦٧\u202c"), "customerPhone=" + strings.Repeat("1", 20), "customerCountryCode=1", "customerCountryCode=9999",
			"status=trialing", "status=expired,canceled,paused,past_due,active,trialing", "status=active%2Cpaused",
			"externalCustomerId=x", "externalCustomerId=" + strings.Repeat("x", 255), "externalCustomerId=" + strings.Repeat("٥", 255),
			"externalCustomerId=+", "externalCustomerId=" + url.QueryEscape("' OR 1=1 --\n,\""),
			"&page=1&", "",
		} {
			b.list(t, "http://shop.test/subscriptions?"+query, 1)
		}
	})
}

func TestList_RefusesForeignAndTamperedLinks(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		link := *b.list(t, "http://shop.test/subscriptions?per_page=5&customerCountryCode=966", 1).NextPageURL
		if got := b.list(t, link, 1).CurrentPage; got != 2 {
			t.Fatalf("the link leads to page %d, want 2", got)
		}
		if refused := b.refused(t, link, 2); refused.Code != "invalid_parameter" {
			t.Errorf("followed by another store: %+v", refused)
		}
		for _, change := range [][2]string{
			{"per_page=5", "per_page=6"},
			{"&per_page=5", ""},
			{"page=2", "page=3"},
			{"966", "971"},
			{"customerCountryCode=966", "customerPhone=966"},
			{"&customerCountryCode=966", ""},
			{"cursor=", "cursor=A"},
		} {
			changed := strings.Replace(link, change[0], change[1], 1)
			if changed == link {
				t.Fatalf("%s has no %s", link, change[0])
			}
			refused := b.refused(t, changed, 1)
			if refused.Code != "invalid_parameter" || refused.Errors["cursor"] == nil {
				t.Errorf("%v changed: %+v", change, refused)
			}
		}
		// The link itself contains the page number, too.
		if got := b.list(t, strings.Replace(link, "page=2&", "", 1), 1).CurrentPage; got != 2 {
			t.Errorf("without its number the link leads to page %d, want 2", got)
		}
	})
}

func TestGet_NotFound(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		for _, id := range []string{
			"5000", "6001", "0", "-5001", "+5001", "05001", "5001.0", "5e3", "five", "9223372036854775807", "9223372036854775808",
			"5001%20", "%27", "%00", "5001'--", "null", strings.Repeat("9", 1000), "%D9%A5",
		} {
			if refused := b.refused(t, "http://shop.test/subscriptions/"+id, 1); refused.Code != "subscription_not_found" {
				t.Errorf("%.30s: %+v, want subscription_not_found", id, refused)
			}
		}
		if refused := b.refused(t, "http://shop.test/subscriptions/5001", 2); refused.Code != "subscription_not_found" {
			t.Errorf("another store's: %+v", refused)
		}
	})
}

func TestErrors_UseTheRequestedLanguageOrElseTheStores(t *testing.T) {
	t.Parallel()
	b := newBundle(sources["memory"](t, sampleData()), stores()...)
	for _, tt := range []struct {
		header string
		store  int64
		want   locale.Locale
	}{
		{"ar", 1, locale.Ar},
		{"en", 4, locale.En},
		{"", 1, locale.En},
		{"", 4, locale.Ar},
		{"fr", 4, locale.Ar},
		{strings.Repeat("ar-SA-x-", 128), 1, locale.En},
	} {
		w := b.do("http://shop.test/subscriptions?page=0", tt.store, tt.header)
		if !strings.Contains(w.Body.String(), `"Language":"`+string(tt.want)+`"`) {
			t.Errorf("%.20q at store %d: %s, want %s", tt.header, tt.store, w.Body, tt.want)
		}
	}
}
