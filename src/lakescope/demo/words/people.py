"""First and last names. The plain lists are ASCII; the international ones hold letters beyond it."""

from __future__ import annotations

FIRST: tuple[str, ...] = tuple(
    """
Aaron Abigail Adam Adrian Alan Albert Alice Amanda Amber Amy Andrea Andrew Angela Anna Anthony Arthur Ashley Barbara
Benjamin Beth Betty Brandon Brenda Brian Bruce Bryan Carl Carol Caroline Catherine Charles Charlotte Cheryl Christina
Christopher Cynthia Daniel David Deborah Dennis Diana Diane Donald Donna Dorothy Douglas Edward Elena Elizabeth Emily
Emma Eric Ethan Eugene Evelyn Frances Frank Gabriel Gary George Gerald Gloria Grace Gregory Hannah Harold Heather Helen
Henry Howard Irene Isabella Jack Jacob Jacqueline James Janet Janice Jason Jean Jeffrey Jennifer Jeremy Jessica Joan
John Jonathan Jordan Joseph Joshua Joyce Juan Judith Julia Julie Justin Karen Katherine Keith Kelly Kenneth Kevin
Kimberly Kyle Larry Laura Lauren Lawrence Linda Lisa Logan Louis Madison Margaret Maria Marie Mark Martha Mary Matthew
Megan Melissa Michael Michelle Mildred Nancy Natalie Nathan Nicholas Nicole Noah Olivia Pamela Patricia Patrick Paul
Peter Philip Rachel Ralph Raymond Rebecca Richard Robert Roger Ronald Rose Russell Ruth Ryan Samantha Samuel Sandra
Sara Scott Sean Sharon Shirley Sophia Stephanie Stephen Steven Susan Teresa Theresa Thomas Timothy Tyler Victoria
Vincent Virginia Walter Wayne William Zachary
""".split()
)

LAST: tuple[str, ...] = tuple(
    """
Adams Alexander Allen Anderson Bailey Baker Barnes Bell Bennett Brooks Brown Bryant Butler Campbell Carter Castillo
Chen Clark Coleman Collins Cook Cooper Cox Cruz Daniels Davis Diaz Dixon Edwards Ellis Evans Fisher Flores Ford Foster
Freeman Garcia Gibson Gomez Gonzalez Graham Grant Gray Green Griffin Hall Hamilton Harris Harrison Hayes Henderson
Hernandez Herrera Hill Howard Hughes Hunter Jackson James Jenkins Johnson Jones Jordan Kelly Kennedy Kim King Lee Lewis
Long Lopez Marshall Martin Martinez Mason McDonald Mendoza Miller Mitchell Moore Morales Morgan Morris Murphy Murray
Myers Nelson Nguyen Ortiz Owens Parker Patel Patterson Perez Perry Peterson Phillips Porter Powell Price Ramirez Ramos
Reed Reyes Reynolds Richardson Rivera Roberts Robinson Rodriguez Rogers Romero Ross Ruiz Russell Sanchez Sanders Scott
Shaw Simmons Simpson Smith Snyder Spencer Stevens Stewart Sullivan Taylor Thomas Thompson Torres Tran Tucker Turner
Vargas Vasquez Wagner Walker Wallace Ward Warren Washington Watson Weaver Webb Wells West White Williams Wilson Wood
Wright Young Abbott Blackwell Caldwell Donovan Everett Fitzgerald Gallagher Hawthorne Ingram Jacobson Kowalski Lindqvist
Montgomery Novak Okafor Petrov Quigley Rosenberg Schneider Takahashi Underwood Valentine Whitaker Yamamoto Zimmerman
""".split()
)

FIRST_INTL: tuple[str, ...] = tuple(
    """
Zoë Chloé François Hélène René José María Íñigo Jürgen Günther Björn Åsa Søren Łukasz Małgorzata Jiří Dvořák Ágnes
Şebnem Ömer Nguyễn Đức Γιώργος Ελένη Ольга Дмитрий 美咲 健太 소연 Siobhán Seán Renée
""".split()
)

LAST_INTL: tuple[str, ...] = tuple(
    """
Müller Schröder Weiß Núñez García Ibáñez Gonçalves Araújo Lefèvre Dvořáková Kovačić Øverland Sørensen Åkesson Łukasik
Wójcik Szabó Kőszegi Yılmaz Çelik Trần Phạm Παπαδόπουλος Иванова Смирнов 佐藤 鈴木 김 Ó'Briain MacGiolla
""".split()
)
