package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Realm is the realm of every KDC.
const Realm = "EXAMPLE.COM"

// KDC is a running Kerberos KDC of MIT's, the system's package. It listens on loopback, and
// wants a proof of the key at each login.
type KDC struct {
	dir, unpacked string
	port          int
	process       *Process
}

// StartKDC makes a realm and starts its KDC. Errors say where the files are.
func StartKDC(ctx context.Context) (*KDC, error) {
	root, err := Root()
	if err != nil {
		return nil, fmt.Errorf("start KDC: %w", err)
	}
	unpacked := filepath.Join(root, "build", "setup", "kdc")
	if _, err := os.Stat(filepath.Join(unpacked, "usr", "sbin", "krb5kdc")); err != nil {
		return nil, fmt.Errorf("start KDC: %w", ErrNotSetUp)
	}

	k := &KDC{unpacked: unpacked}
	if k.dir, err = runDir("kdc"); err != nil {
		return nil, fmt.Errorf("start KDC: %w", err)
	}
	if k.port, err = FreePort(); err == nil {
		err = k.create(ctx)
	}
	if err == nil {
		err = k.Restart(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start KDC, files kept in %s: %w", k.dir, err)
	}
	return k, nil
}

// create writes the configuration and makes the database.
func (k *KDC) create(ctx context.Context) error {
	text := strings.NewReplacer("REALM", Realm, "DIR", k.dir, "PORT", strconv.Itoa(k.port),
		"PLUGINS", filepath.Join(k.libraries()[0], "krb5", "plugins", "kdb"))
	for name, config := range map[string]string{"krb5.conf": krb5Conf, "kdc.conf": kdcConf} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text.Replace(config)), 0o644); err != nil {
			return err
		}
	}
	if err := k.run(ctx, "usr/sbin/kdb5_util", "create", "-s", "-P", "master", "-r", Realm); err != nil {
		return err
	}
	// Tickets for the ticket-granting service can be renewed only if the service's own may.
	return k.admin(ctx, "modprinc -maxrenewlife 7days krbtgt/"+Realm)
}

// Restart starts the KDC, again after Stop.
func (k *KDC) Restart(ctx context.Context) error {
	p, err := Start(ctx, Command{
		Name: "krb5kdc",
		Path: filepath.Join(k.unpacked, "usr/sbin/krb5kdc"),
		Args: []string{"-n"},
		Dir:  k.dir,
		Env:  k.env(),
	})
	if err != nil {
		return err
	}
	k.process = p
	return UntilProcess(ctx, p, 20*time.Millisecond, func(ctx context.Context) error {
		return dials(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(k.port)))
	})
}

// Stop ends the KDC; nobody listens at its port then.
func (k *KDC) Stop() { k.process.Kill() }

// Krb5Conf returns the path of the krb5.conf for clients and servers.
func (k *KDC) Krb5Conf() string { return filepath.Join(k.dir, "krb5.conf") }

// Krb5ConfUDP returns the path of a krb5.conf with which requests go by UDP if they are small.
func (k *KDC) Krb5ConfUDP() (string, error) {
	text, err := os.ReadFile(k.Krb5Conf())
	if err != nil {
		return "", err
	}
	path := filepath.Join(k.dir, "krb5-udp.conf")
	return path, os.WriteFile(path, []byte(strings.Replace(string(text), "  udp_preference_limit = 1\n", "", 1)), 0o644)
}

// Keytab makes principals, name or name/host, that do not exist yet, and returns the path
// of a keytab with new keys of them.
func (k *KDC) Keytab(ctx context.Context, principals ...string) (string, error) {
	f, err := os.CreateTemp(k.dir, "*.keytab")
	if err != nil {
		return "", err
	}
	path := f.Name()
	// kadmin makes the file itself.
	if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
		return "", err
	}
	for _, p := range principals {
		// The second fails for one that was not made.
		if err := k.admin(ctx, "addprinc -randkey -maxrenewlife 7days "+p); err != nil &&
			!strings.Contains(err.Error(), "already exists") {
			return "", err
		}
		if err := k.admin(ctx, "ktadd -k "+path+" "+p); err != nil {
			return "", err
		}
	}
	return path, nil
}

// LimitTickets limits the life of a principal's tickets from now on.
func (k *KDC) LimitTickets(ctx context.Context, principal string, life time.Duration) error {
	return k.admin(ctx, fmt.Sprintf("modprinc -maxlife %dseconds %s", int(life.Seconds()), principal))
}

// Issued counts the tickets that a principal was given: those for the KDC itself, which come of a
// keytab or of renewing, and those for other services.
func (k *KDC) Issued(principal string) (own, services int, err error) {
	log, err := os.ReadFile(filepath.Join(k.dir, "kdc.log"))
	if err != nil {
		return 0, 0, err
	}
	client := " " + principal + "@" + Realm + " for "
	for line := range strings.Lines(string(log)) {
		_, service, found := strings.Cut(line, client)
		switch {
		case !found || !strings.Contains(line, "ISSUE: "):
		case strings.HasPrefix(service, "krbtgt/"):
			own++
		default:
			services++
		}
	}
	return own, services, nil
}

// Kinit fills a ticket cache from a keytab and returns its path. Further arguments are
// kinit's: -l and -r are the lifetimes.
func (k *KDC) Kinit(ctx context.Context, keytab, principal string, args ...string) (string, error) {
	path := strings.TrimSuffix(keytab, ".keytab") + ".ccache"
	return path, k.run(ctx, "usr/bin/kinit", append(args, "-c", "FILE:"+path, "-k", "-t", keytab, principal)...)
}

// admin runs a command of kadmin.local. That ends well whatever happens, so its output shows the outcome.
func (k *KDC) admin(ctx context.Context, command string) error {
	return k.run(ctx, "usr/sbin/kadmin.local", "-r", Realm, "-q", command)
}

// run runs a program to its end.
func (k *KDC) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(k.unpacked, program), args...)
	cmd.Env, cmd.Dir = k.env(), k.dir
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// kadmin.local: "add_principal: Principal or policy already exists …".
		command, _, found := strings.Cut(line, ": ")
		if found && !strings.Contains(command, " ") && command != "WARNING" && command != "Password" {
			err = errors.Join(err, errors.New(strings.TrimSpace(line)))
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return nil
}

func (k *KDC) libraries() []string {
	found, _ := filepath.Glob(filepath.Join(k.unpacked, "usr/lib/*-linux-gnu"))
	more, _ := filepath.Glob(filepath.Join(k.unpacked, "lib/*-linux-gnu"))
	return append(found, more...)
}

// env is the environment of MIT's programs.
func (k *KDC) env() []string {
	return append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(k.libraries(), ":"),
		"KRB5_CONFIG="+k.Krb5Conf(), "KRB5_KDC_PROFILE="+filepath.Join(k.dir, "kdc.conf"))
}

// Close ends the KDC and removes its files.
func (k *KDC) Close() error {
	k.Stop()
	return os.RemoveAll(k.dir)
}

// CloseKeeping ends the KDC and returns where its files and logs are.
func (k *KDC) CloseKeeping() (files string, err error) {
	k.Stop()
	return k.dir, nil
}

const krb5Conf = `[libdefaults]
  default_realm = REALM
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  REALM = {
    kdc = 127.0.0.1:PORT
  }
[dbmodules]
  db_module_dir = PLUGINS
`

const kdcConf = `[kdcdefaults]
  kdc_listen = 127.0.0.1:PORT
  kdc_tcp_listen = 127.0.0.1:PORT
[realms]
  REALM = {
    database_name = DIR/principal
    key_stash_file = DIR/stash
    acl_file = DIR/acl
    max_life = 24h
    max_renewable_life = 7d
    supported_enctypes = aes256-cts:normal aes128-cts:normal
    default_principal_flags = +preauth
  }
[logging]
  kdc = FILE:DIR/kdc.log
`
