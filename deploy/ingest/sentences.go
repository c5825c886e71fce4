package ingest

// sentence says what a constraint demands, in words of the file.
type sentence struct{ member, text string }

const (
	aDate        = "must be in the years 1 to 9999"
	aDuration    = "must be monthly, quarterly, semiAnnual, annually, biennial, quinquennial or decennial"
	anAmount     = "must be from 0 to 1000000000000"
	aPrice       = "must be from 0 to 100000000000"
	translations = "must be an object of texts by language, en or ar, of 1 to "
)

// sentences has each CHECK constraint of the tables that an import writes. A constraint
// that is missing here is reported by its definition.
var sentences = map[string]sentence{
	"product_id_is_positive":             {"id", "must be positive"},
	"product_has_a_name":                 {"name", "must have 1 to 500 characters"},
	"product_names_are_translations":     {"names", translations + "500 characters"},
	"product_has_a_slug":                 {"slug", "must have 1 to 500 characters"},
	"product_has_a_type":                 {"type", "must have 1 to 64 characters"},
	"product_price_is_in_range":          {"price", aPrice},
	"product_original_price_is_in_range": {"original_price", "must be from price to 1000000000000"},
	"product_tax_is_a_share":             {"tax_ppm", "must be from 0 to 1000000"},
	"product_stock_is_in_range":          {"stock", anAmount},
	"product_min_quantity_is_in_range":   {"min_quantity", "must be from 1 to 1000000"},
	"product_max_quantity_is_in_range":   {"max_quantity", "must be from min_quantity to 1000000"},
	"product_max_per_cart_is_in_range":   {"max_per_cart", "must be from min_quantity to 1000000"},
	"product_step_is_in_range":           {"step", "must be from 1 to 1000000"},
	"product_image_has_a_url":            {"image_url", "must have 1 to 2000 characters"},

	"plan_id_is_positive":           {"id", "must be positive"},
	"plan_duration_is_known":        {"duration", aDuration},
	"plan_price_is_in_range":        {"price", aPrice},
	"plan_label_is_short":           {"label", "must have 1 to 255 characters"},
	"plan_labels_are_translations":  {"labels", translations + "255 characters"},
	"plan_labels_translate_a_label": {"labels", "must be empty without a label"},

	"field_has_a_name":              {"name", "must have 1 to 255 characters"},
	"field_position_is_in_range":    {"", "a product has at most 25 fields"},
	"option_has_a_code":             {"code", "must have 1 to 255 characters"},
	"option_has_a_name":             {"name", "must have 1 to 255 characters"},
	"option_names_are_translations": {"names", translations + "500 characters"},
	"option_price_is_in_range":      {"price", "must be from 0 to 10000000000"},

	"customer_id_is_positive":         {"id", "must be positive"},
	"customer_email_is_not_empty":     {"email", "must not be empty; leave it out, or set it to null"},
	"customer_phone_is_short":         {"phone", "must have 1 to 64 characters"},
	"customer_calling_code_is_digits": {"calling_code", "must be empty, or 1 to 4 digits without leading zeros"},
	"card_shows_four_digits":          {"last_four", "must have 4 digits"},
	"card_has_a_scheme":               {"scheme", "must have 1 to 64 characters"},

	"subscription_id_is_positive":                 {"id", "must be positive"},
	"subscription_status_is_known":                {"status", "must be trialing, active, past_due, paused, canceled or expired"},
	"subscription_external_customer_is_not_empty": {"external_customer_id", "must not be empty; leave it out, or set it to null"},
	"subscription_external_customer_is_short":     {"external_customer_id", "must have at most 255 characters"},
	"subscription_duration_is_known":              {"duration", aDuration},
	"subscription_order_is_positive":              {"order_id", "must be positive"},
	"subscription_price_is_in_range":              {"price_amount", anAmount},
	"subscription_currency_is_iso_4217":           {"currency", "must be an ISO 4217 code of three capital letters"},
	"subscription_change_changes":                 {"scheduled_variant_id", "must differ from variant_id"},
	"subscription_metadata_is_an_object":          {"metadata", "must be an object"},
	"subscription_metadata_is_short":              {"metadata", "must have at most 16384 bytes"},

	"subscription_starts_before_it_ends":          {"ends_at", "must not be before starts_at"},
	"subscription_period_has_a_length":            {"current_period_end", "must be after current_period_start"},
	"subscription_trial_has_an_end":               {"trial_ends_at", "is required while status is trialing"},
	"subscription_cancellation_has_a_time":        {"canceled_at", "is required while status is canceled"},
	"subscription_pause_has_a_beginning":          {"paused_at", "must be set while status is paused, and only then"},
	"subscription_pause_has_an_end":               {"paused_remaining_days", "must be set while status is paused, and only then"},
	"subscription_pause_keeps_days":               {"paused_remaining_days", "must not be negative"},
	"subscription_past_due_is_retried":            {"next_retry_at", "must be set while status is past_due, and only then"},
	"subscription_past_due_has_grace":             {"grace_ends_at", "must be set only while status is past_due"},
	"subscription_starts_at_is_a_date":            {"starts_at", aDate},
	"subscription_ends_at_is_a_date":              {"ends_at", aDate},
	"subscription_trial_ends_at_is_a_date":        {"trial_ends_at", aDate},
	"subscription_canceled_at_is_a_date":          {"canceled_at", aDate},
	"subscription_paused_at_is_a_date":            {"paused_at", aDate},
	"subscription_next_retry_at_is_a_date":        {"next_retry_at", aDate},
	"subscription_grace_ends_at_is_a_date":        {"grace_ends_at", aDate},
	"subscription_created_at_is_a_date":           {"created_at", aDate},
	"subscription_updated_at_is_a_date":           {"updated_at", aDate},
	"subscription_current_period_end_is_a_date":   {"current_period_end", aDate},
	"subscription_current_period_start_is_a_date": {"current_period_start", aDate},
}
