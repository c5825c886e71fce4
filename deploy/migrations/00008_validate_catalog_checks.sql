-- Marks the checks of 00006 as valid. This reads every row, while others read and write.

-- +goose Up
ALTER TABLE products
    VALIDATE CONSTRAINT product_names_are_translations,
    VALIDATE CONSTRAINT product_tax_is_a_share,
    VALIDATE CONSTRAINT product_max_per_cart_is_in_range,
    VALIDATE CONSTRAINT product_step_is_in_range;
ALTER TABLE field_options
    VALIDATE CONSTRAINT option_names_are_translations;
ALTER TABLE plans
    VALIDATE CONSTRAINT plan_label_is_short,
    VALIDATE CONSTRAINT plan_labels_are_translations,
    VALIDATE CONSTRAINT plan_labels_translate_a_label;

-- +goose Down
-- A check that is valid may stay so.
SELECT 1;
