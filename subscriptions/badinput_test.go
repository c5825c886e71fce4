package subscriptions_test

import (
	"net/url"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// Every refusal names the parameter, and none returns rows.
func TestList_RefusesInvalidParameters(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		for at, queries := range map[string][]string{
			"page": {
				"page=0", "page=-1", "page=1000001",
				"page=66668", // skips 1,000,005 rows
				"page=10002&per_page=100", "page=1000000&per_page=2", "page=10002&per_page=100&customerCountryCode=966",
				"page=9007199254740993&cursor=AAAA", "page=9223372036854775808", "page=" + strings.Repeat("9", 1000),
				"page=1.0", "page=1e1", "page=01", "page=%2B1", "page=+1", "page=one", "page=", "page", "page=1&page=1",
				"page=1&page=2",
			},
			"cursor":   {"page=1000001&cursor=AAAA", "cursor=", "cursor=AAAA", "cursor=" + strings.Repeat("A", 1000), "cursor=%00"},
			"per_page": {"per_page=0", "per_page=101", "per_page=-15", "per_page=٥"},
			"customerEmail": {
				"customerEmail=", "customerEmail=sara", "customerEmail=@", "customerEmail=a@b@c", "customerEmail=a@b%00",
				"customerEmail=a@%FF", "customerEmail=a%20@b", "customerEmail=" + url.QueryEscape("' OR 1=1 --"),
				"customerEmail=" + strings.Repeat("a", 253) + "@b", "customerEmail=a@b&customerEmail=a@b",
			},
			"customerPhone": {
				"customerPhone=", "customerPhone=abc", "customerPhone=0", "customerPhone=" + strings.Repeat("1", 21),
				"customerPhone=" + url.QueryEscape("1; DROP TABLE subscriptions"),
			},
			"customerCountryCode": {
				"customerCountryCode=", "customerCountryCode=%2B966", "customerCountryCode=SA", "customerCountryCode=12345",
				"customerCountryCode=9%2066", "customerCountryCode=0966", "customerCountryCode=0",
			},
			"status": {
				"status=", "status", "status=cancelled", "status=Active", "status=active,", "status=,active",
				"status=active,,paused", "status=active,active", "status=active,paused,active", "status=active,+paused",
				"status=active%00", "status=active&status=paused", "status=" + strings.Repeat("active,", 10_000),
			},
			"query":    {"status=active;paused", "=1", "page=%zz", "page=1;per_page=2"},
			"status[]": {"status[]=active"},
			"externalCustomerId": {
				"externalCustomerId=", "externalCustomerId=%00", "externalCustomerId=crm%FF",
				"externalCustomerId=" + strings.Repeat("x", 256), "externalCustomerId=" + strings.Repeat("٥", 256),
				"externalCustomerId=a&externalCustomerId=a",
			},
			"externalCustomerID":   {"externalCustomerID=a"},
			"external_customer_id": {"external_customer_id=a"},
			"customeremail":        {"customeremail=a@b"},
			"customerEmail[]":      {"customerEmail[]=a@b"},
			"email":                {"email=a@b"},
			"perPage":              {"perPage=10"},
			"sort":                 {"sort=id"},
		} {
			for _, query := range queries {
				refused := b.refused(t, "http://shop.test/subscriptions?"+query, 1)
				assert.That(t, refused.Code == "invalid_parameter" && len(refused.Errors[at]) == 1 && refused.Message != "",
					"%.80s: %+v, want invalid_parameter at %q", query, refused, at)
			}
		}
		for _, page := range []string{"10002", "1000000", "1000001", "9007199254740993", strings.Repeat("9", 30)} {
			tooFar := b.refused(t, "http://shop.test/subscriptions?per_page=100&page="+page, 1)
			assert.That(t, strings.Contains(tooFar.Message, "1000000 subscriptions") && strings.Contains(tooFar.Message, "next_page_url"), "%s: no limit, or no advice to follow links: %+v", page, tooFar)
		}
		several := b.refused(t, "http://shop.test/subscriptions?page=0&per_page=0&colour=red", 1)
		assert.Equal(t, len(several.Errors), 3, "three invalid parameters: %+v", several.Errors)
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
		assert.Equal(t, b.list(t, link, 1).CurrentPage, 2, "the link leads to page")
		b.wantRefused(t, link, 2, "invalid_parameter")
		// TestLink_IsBoundToItsWholeListing has all changes.
		b.wantRefused(t, strings.Replace(link, "page=2", "page=3", 1), 1, "invalid_parameter", "cursor")
		// The link itself contains the page number, too.
		assert.Equal(t, b.list(t, strings.Replace(link, "page=2&", "", 1), 1).CurrentPage, 2,
			"without its number the link leads to page")
	})
}

func TestGet_NotFound(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		for _, id := range []string{
			"5000", "6001", "0", "-5001", "+5001", "05001", "5001.0", "5e3", "five", "9223372036854775807", "9223372036854775808",
			"summar", "summaryy", "s", "Summary", "summary%20", "5001%20", "%27", "%00", "5001'--", "null", strings.Repeat("9", 1000), "%D9%A5",
		} {
			b.wantRefused(t, "http://shop.test/subscriptions/"+id, 1, "subscription_not_found")
		}
		b.wantRefused(t, "http://shop.test/subscriptions/5001", 2, "subscription_not_found")
	})
}
