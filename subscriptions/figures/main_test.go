package figures_test

import (
	"testing"

	"commerce/subscriptions/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestAll_PassBehindAPooler(t *testing.T) { suite.PassBehindPooler(t) }
