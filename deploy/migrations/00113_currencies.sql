-- A subscription in a currency whose decimals the service does not know would hide each page that shows
-- it, so it is refused.
--
-- Each statement commits by itself, as in 00104.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $$
DECLARE
    known text[] := regexp_split_to_array('AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF
        CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF
        IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU
        MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD
        SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST
        XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG ZWL', '\s+');
    unknown record;
BEGIN
    SELECT store_id, id, currency INTO unknown FROM subscriptions WHERE currency <> ALL (known) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'subscription % of store % has the unknown currency %, so replace it, then repeat the migration',
            unknown.id, unknown.store_id, unknown.currency;
    END IF;
    ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_currency_is_known;
    EXECUTE format('ALTER TABLE subscriptions ADD CONSTRAINT subscription_currency_is_known CHECK (currency = ANY (%L)) NOT VALID', known);
END $$;
-- +goose StatementEnd
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscription_currency_is_known;
ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_currency_is_iso_4217;
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_currency_is_iso_4217;
ALTER TABLE subscriptions ADD CONSTRAINT subscription_currency_is_iso_4217 CHECK (currency ~ '^[A-Z]{3}$') NOT VALID;
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscription_currency_is_iso_4217;
ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_currency_is_known;
RESET lock_timeout;
