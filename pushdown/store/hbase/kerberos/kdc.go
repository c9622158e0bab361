package kerberos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is a ticket with its properties.
type ticket struct {
	messages.Ticket
	key            types.EncryptionKey // of the session
	begin, end     time.Time
	renewableUntil time.Time // zero if it cannot be renewed
}

// source is where tickets come from.
type source interface {
	// login returns a ticket-granting ticket. old may be nil; a ticket cache renews it if
	// it has no newer one, unless old is refused: then any other will do.
	login(ctx context.Context, old *ticket, refused bool) (*ticket, error)
	// service returns a ticket for a service. Without a realm it is found by the host's domain in
	// krb5.conf, or by our own KDC.
	service(ctx context.Context, tgt *ticket, name types.PrincipalName, realm string) (*ticket, error)
}

// kdc is the source that calls the KDC. The files are read for each exchange, so they may change.
type kdc struct {
	cfg     Config
	client  principal
	network *network
}

func (k *kdc) login(ctx context.Context, old *ticket, refused bool) (*ticket, error) {
	conf, err := loadKrb5Conf(k.cfg.Krb5Conf)
	if err != nil {
		return nil, err
	}
	if k.cfg.Keytab == "" {
		return k.fromCache(ctx, conf, old, refused)
	}

	keys, err := loadKeytab(k.cfg.Keytab)
	if err != nil {
		return nil, err
	}
	t, err := parsed(func() (*ticket, error) { return k.logIn(ctx, conf, keys) })
	if err != nil {
		return nil, explain(err, k.client.String(), k.client.String(), k.client.realm)
	}
	return t, nil
}

// fromCache returns the ticket of the ticket cache, or renews the old one.
func (k *kdc) fromCache(ctx context.Context, conf *config.Config, old *ticket, refused bool) (*ticket, error) {
	cached, err := k.readCache()
	if err == nil {
		old, refused = inUse(cached, old, refused)
	}
	switch now := time.Now(); {
	case refused && err != nil:
		return nil, err
	case refused: // and the cache has no other
		return nil, fmt.Errorf("ticket cache %s: the KDC refuses its ticket: it must be renewed, as by kinit",
			k.cfg.TicketCache)
	case old == nil:
		return nil, err
	case now.Before(old.end) && !aging(old, now):
		return old, nil
	case now.After(old.end) && err != nil:
		return nil, err
	case now.After(old.end):
		return nil, fmt.Errorf("ticket cache %s: its ticket has expired at %s: it must be renewed, as by kinit",
			k.cfg.TicketCache, old.end.Format(time.RFC3339))
	case now.Before(old.renewableUntil):
		// It is renewed below.
	case !usable(old, now):
		return nil, fmt.Errorf("ticket cache %s: its ticket ends at %s: it must be renewed, as by kinit",
			k.cfg.TicketCache, old.end.Format(time.RFC3339))
	default:
		return old, nil // as long as it lasts
	}

	tgs := types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", k.client.realm}}
	renewed, err := k.exchange(ctx, conf, k.client.realm, old, tgs, true)
	if err != nil {
		return nil, fmt.Errorf("renewing the ticket of the ticket cache %s: %w", k.cfg.TicketCache, err)
	}
	return renewed, nil
}

// inUse returns which of the ticket in the ticket cache and the last one is used, and whether that is one
// that the KDC refuses: of two the one that ends later, but any other one in place of one that is refused. The last one
// may be nil.
func inUse(cached, last *ticket, refused bool) (*ticket, bool) {
	switch {
	case last == nil:
		return cached, false
	case refused && !bytes.Equal(cached.EncPart.Cipher, last.EncPart.Cipher):
		return cached, false // even if it ends soon
	case !refused && cached.end.After(last.end):
		return cached, false
	}
	return last, refused
}

// readCache returns the ticket-granting ticket of the ticket cache.
func (k *kdc) readCache() (*ticket, error) {
	cache, err := loadCache(k.cfg.TicketCache)
	if err != nil {
		return nil, err
	}
	if got := cachePrincipal(cache); got.String() != k.client.String() {
		return nil, fmt.Errorf("ticket cache %s: it is of %s, want %s", k.cfg.TicketCache, got, k.client)
	}

	for _, c := range cache.GetEntries() {
		name := c.Server.PrincipalName.NameString
		if len(name) != 2 || name[0] != "krbtgt" || name[1] != k.client.realm {
			continue
		}
		t := &ticket{key: c.Key, begin: c.StartTime, end: c.EndTime, renewableUntil: c.RenewTill}
		if t.begin.Unix() <= 0 {
			t.begin = c.AuthTime
		}
		if err := t.Unmarshal(c.Ticket); err != nil {
			return nil, fmt.Errorf("ticket cache %s: %w", k.cfg.TicketCache, err)
		}
		return t, nil
	}
	return nil, fmt.Errorf("ticket cache %s: it has no ticket-granting ticket of %s", k.cfg.TicketCache, k.client.realm)
}

func (k *kdc) service(ctx context.Context, tgt *ticket, name types.PrincipalName, realm string) (*ticket, error) {
	conf, err := loadKrb5Conf(k.cfg.Krb5Conf)
	if err != nil {
		return nil, err
	}
	if realm == "" && len(name.NameString) > 1 {
		realm = conf.ResolveRealm(name.NameString[1])
	}
	if realm == "" {
		realm = k.client.realm
	}

	// The KDC of another realm takes a ticket-granting ticket that ours gives for it.
	if realm != k.client.realm {
		tgs := types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
		if tgt, err = k.exchange(ctx, conf, k.client.realm, tgt, tgs, false); err != nil {
			return nil, err
		}
	}
	return k.exchange(ctx, conf, realm, tgt, name, false)
}

// exchange requests a ticket from the KDC of a realm.
func (k *kdc) exchange(ctx context.Context, conf *config.Config, realm string, tgt *ticket, name types.PrincipalName,
	renew bool) (*ticket, error) {
	t, err := parsed(func() (*ticket, error) { return k.getTicket(ctx, conf, realm, tgt, name, renew) })
	if err != nil {
		return nil, explain(err, k.client.String(), name.PrincipalNameString()+"@"+realm, realm)
	}
	return t, nil
}

func newTicket(t messages.Ticket, part messages.EncKDCRepPart) *ticket {
	out := &ticket{Ticket: t, key: part.Key, begin: part.StartTime, end: part.EndTime, renewableUntil: part.RenewTill}
	if out.begin.Unix() <= 0 {
		out.begin = part.AuthTime
	}
	return out
}

// loadKeytab reads a keytab.
func loadKeytab(path string) (*keytab.Keytab, error) {
	keys, err := parsed(func() (*keytab.Keytab, error) { return keytab.Load(path) })
	if err == nil && len(keys.Entries) == 0 {
		err = errors.New("it has no keys")
	}
	if err != nil {
		return nil, fmt.Errorf("keytab %s: %w", path, err)
	}
	return keys, nil
}

// loadCache reads a ticket cache.
func loadCache(path string) (*credentials.CCache, error) {
	cache, err := parsed(func() (*credentials.CCache, error) { return credentials.LoadCCache(path) })
	if err != nil {
		return nil, fmt.Errorf("ticket cache %s: %w", path, err)
	}
	return cache, nil
}

func cachePrincipal(c *credentials.CCache) principal {
	name := c.GetClientPrincipalName()
	name.NameType = nametype.KRB_NT_PRINCIPAL
	return principal{name, c.GetClientRealm()}
}
