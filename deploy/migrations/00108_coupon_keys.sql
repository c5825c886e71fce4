-- Codes of coupons are compared without format characters, and by the value of their digits. The
-- index has what package cart compares (CouponKey), with the digits and format characters of
-- Unicode 15. The release before does not need it.
--
-- For a million coupons, those who change some wait a few seconds, and checkouts do not. CREATE INDEX
-- CONCURRENTLY, which EXECUTE cannot run, would have to spell all 670 digits.

-- +goose Up
SET LOCAL lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $$
DECLARE
    -- The zeros of all scripts: nine other digits follow each of them.
    zeros text := U&'\0660\06F0\07C0\0966\09E6\0A66\0AE6\0B66\0BE6\0C66\0CE6\0D66\0DE6\0E50\0ED0\0F20\1040\1090\17E0\1810\1946\19D0\1A80\1A90\1B50'
        '\1BB0\1C40\1C50\A620\A8D0\A900\A9D0\A9F0\AA50\ABF0\FF10\+0104A0\+010D30\+011066\+0110F0\+011136\+0111D0\+0112F0\+011450\+0114D0'
        '\+011650\+0116C0\+011730\+0118E0\+011950\+011C50\+011D50\+011DA0\+011F50\+016A60\+016AC0\+016B50\+01D7CE\+01D7D8\+01D7E2\+01D7EC'
        '\+01D7F6\+01E140\+01E2F0\+01E4F0\+01E950\+01FBF0';
    formats text := U&'\00AD\061C\180E\200B\200C\200D\200E\200F\202A\202B\202C\202D\202E\2060\2061\2062\2063\2064\2066\2067\2068\2069\206A\206B'
        '\206C\206D\206E\206F\FEFF\+01BCA0\+01BCA1\+01BCA2\+01BCA3\+01D173\+01D174\+01D175\+01D176\+01D177\+01D178\+01D179\+01D17A\+0E0001';
    spaces text := U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000';
    digits text;
    ascii_digits text;
BEGIN
    SELECT string_agg(chr(ascii(zero) + value), '' ORDER BY ascii(zero), value), string_agg(value::text, '' ORDER BY ascii(zero), value)
        INTO digits, ascii_digits
        FROM regexp_split_to_table(zeros, '') zero, generate_series(0, 9) value;
    EXECUTE format('CREATE INDEX coupons_by_key ON coupons (store_id, ((CASE WHEN octet_length(code) = length(code) THEN code
        ELSE normalize(btrim(translate(code, %L, %L), %L)) END) COLLATE "C"))', digits || formats, ascii_digits, spaces);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX coupons_by_key;
